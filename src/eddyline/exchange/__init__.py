"""How tuple batches travel and wait; knows no Spark."""
