"""Standing queries: what sharing them costs and saves, in the engine and on Spark."""
