"""Functions that are asked the same again and again, or never, against plain Spark and a cache."""
