"""Files of this machine are written without processes, and are as Hadoop's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import fresh_process

pytestmark = pytest.mark.spark

CODE = """
import os, stat, time
import eddyline
from eddyline import catalyst
from eddyline.standing.stream_settings import stream_settings

folder = {folder!r}
spark = eddyline.session("files", master="local[1]", config={{"spark.ui.enabled": "false"}})
rows = spark.range(1000)
rows.write.parquet(folder + "/usual")
print(catalyst.write_local_files_directly(), catalyst.write_local_files_directly())
rows.write.parquet(folder + "/ours")
rows.limit(7).write.mode("overwrite").parquet(folder + "/usual")
jvm = spark._jvm
system = jvm.org.apache.hadoop.fs.FileSystem.get(
    jvm.java.net.URI("file:///"), spark._jsc.hadoopConfiguration()
)
print(system.getClass().getName())
file = jvm.org.apache.hadoop.fs.Path(folder + "/ours/_SUCCESS")
kind = jvm.org.apache.hadoop.fs.permission.FsPermission
for mode in ("640", "1755"):
    system.setPermission(file, kind(mode))
    print(oct(stat.S_IMODE(os.stat(folder + "/ours/_SUCCESS").st_mode)))
usual, ours = (
    {{oct(os.stat(os.path.join(folder, name, f)).st_mode) for f in os.listdir(folder + "/" + name)
      if f.startswith("part")}}
    for name in ("usual", "ours")
)
print(usual == ours, spark.read.parquet(folder + "/ours").count())
print(spark.read.parquet(folder + "/usual").count())
manager = "spark.sql.streaming.checkpointFileManagerClass"
with stream_settings(spark, 2):
    written = spark.conf.get(manager)
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    writer = rows.writeStream.foreachBatch(lambda rows, number: None)
    query = writer.option("checkpointLocation", folder + "/checkpoint").start()
while not os.path.exists(folder + "/checkpoint/commits/1"):
    time.sleep(0.05)
query.stop()
print(written.rpartition(".")[2], spark.conf.get(manager, None))
spark.conf.set(manager, "somebody's own")
with stream_settings(spark, 2):
    print(spark.conf.get(manager))
"""


def test_local_files_are_written_by_the_jvm_itself(tmp_path: Path) -> None:
    found = fresh_process.printed_lines(CODE.format(folder=str(tmp_path)), seconds=120)
    assert found[-8:] == [
        "True True",
        "eddyline.catalyst.LocalFiles",
        "0o640",
        "0o1755",
        "True 1000",
        "7",
        "FileSystemBasedCheckpointFileManager None",
        "somebody's own",
    ]
