"""Standing queries: any number of continuous queries in few streaming jobs."""
