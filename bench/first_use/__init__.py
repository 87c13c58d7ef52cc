"""The first use of Eddyline in a process, beside Spark's own."""
