"""What a report of a fault says of where it happened."""

from __future__ import annotations

import importlib.metadata

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

import eddyline
from tests.fresh_process import printed_lines


def test_versions_and_settings_are_told_and_no_secrets(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    spark.conf.set("spark.hadoop.fs.s3a.secret.key", "s3cret")
    eddyline.show_versions()
    told = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert told["Eddyline"] == eddyline.__version__
    assert told["pyspark"] == pyspark.__version__
    assert told["pyarrow"] == pa.__version__
    assert told["Java"].startswith("that is found")
    assert told["session"] == f"Spark {spark.version}"
    assert told["spark.master"] == "local[2]"
    assert "s3cret" not in str(told)
    spark.conf.unset("spark.hadoop.fs.s3a.secret.key")


def test_without_spark_it_says_so_and_starts_none() -> None:
    code = """
import sys
sys.modules["pyspark"] = None
import importlib.metadata as metadata
version = metadata.version
def without(name):
    if name == "pyspark":
        raise metadata.PackageNotFoundError(name)
    return version(name)
metadata.version = without
import eddyline
eddyline.show_versions()
"""
    told = dict(line.split(maxsplit=1) for line in printed_lines(code))
    assert told["pyspark"] == "not installed"
    assert told["session"] == "none"
    assert told["numpy"] == importlib.metadata.version("numpy")
