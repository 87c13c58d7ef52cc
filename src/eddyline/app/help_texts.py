"""What ``eddyline`` and its commands print below their options: how people use them."""

from typing import Final

DESCRIPTION: Final = """\
Run the Python predicates of Spark queries in an eddy: which one comes first is
decided, and decided anew, while the query runs.
"""

EXAMPLES: Final = """\
examples:
  eddyline demo
  eddyline sql --udf rules:is_late:boolean --udf rules:is_odd:boolean \\
      "SELECT * FROM 'flights.parquet' WHERE is_late(dep_delay) AND is_odd(flight)"
  eddyline explain job.py
"""

DEMO_EXAMPLES: Final = """\
examples:
  eddyline demo
  eddyline demo --runs 1 --out flights.html
  eddyline demo --sample 50000
  eddyline demo lookups
  eddyline demo rules
"""

SQL_EXAMPLES: Final = """\
examples:
  print the first 20 rows; the report tells how rows were routed until these were there:
      eddyline sql --udf rules:is_odd:boolean --udf rules:score \\
          "SELECT * FROM 'orders.parquet' WHERE is_odd(id) AND score(text) > 0.5"
  two files, functions with annotations, all rows into a file:
      eddyline sql --udf rules:score --udf rules:is_odd --output suspicious.parquet \\
          "SELECT o.* FROM 'orders.csv' o JOIN 'customers.json' USING (customer) \\
          WHERE score(text) > 0.5 AND is_odd(id)"
  the same without eddies, to compare; a table with a name:
      eddyline sql --plain --table t=orders.parquet --udf rules:is_odd:boolean \\
          --udf rules:score "SELECT * FROM t WHERE is_odd(id) AND score(text) > 0.5"

The module rules is rules.py, looked for in the current folder first.
"""

EXPLAIN_EXAMPLES: Final = """\
examples:
  eddyline explain job.py
  eddyline explain job.py --name suspicious
  eddyline explain --udf rules:is_odd:boolean --udf rules:is_late:boolean \\
      --sql "SELECT * FROM 'orders.parquet' WHERE is_odd(id) AND is_late(day)"
"""

REPORT_EXAMPLES: Final = """\
examples:
  eddyline report --event-log /tmp/spark-events/eventlog_v2_local-1764320400000
  eddyline report --event-log /tmp/spark-events/app-20251128-0001.zstd --action 3
  eddyline report --event-log /tmp/spark-events/local-1764320400000 --html reports.html

The application ran with spark.eventLog.enabled=true. No Spark is started.
"""

JAR_EXAMPLES: Final = """\
examples:
  spark-submit --jars $(eddyline jar) \\
      --conf spark.plugins=eddyline.spark.EddylinePlugin job.py
"""

RULES_EXAMPLES: Final = """\
examples:
  run the queries of a file, until Ctrl-C:
      eddyline rules run alerts.toml
  meanwhile, in another terminal:
      eddyline rules list alerts.toml
      eddyline rules add alerts.toml big "SELECT * FROM trades WHERE price > 1000"
      eddyline rules drop alerts.toml big

alerts.toml:
  state = "alerts-state"            # where the queries are kept
  sink = "alerts"                   # a folder of Parquet files, or "console"
  history = "7 days"                # old data that new queries can see with --backfill
  by_query = true                   # a directory under the sink for each query
  function_seconds = 10             # what a function may take in a task, and a query put out in a
  max_results = 100_000             # micro-batch: beyond, the query is paused
  [streams.trades]
  format = "parquet"                # any that Spark can read as a stream
  schema = "symbol string, price double, time timestamp"
  path = "incoming"
  watermark = ["time", "1 minute"]  # where queries join streams
  options = { maxFilesPerTrigger = 1 }
  [queries]
  cheap = "SELECT symbol, price FROM trades WHERE price < 1"
  near = { sql = "SELECT ... FROM trades a JOIN trades b ON ...", keep = "1 hour" }
  [[templates]]
  name = "limits"
  sql = "SELECT symbol, price FROM trades WHERE symbol = :symbol AND price > :most"
  parameters = "limits.csv"         # a column for each marker, and maybe `name`
"""
