"""Standing queries on Spark: how fast, and what is left of them when processes are killed."""
