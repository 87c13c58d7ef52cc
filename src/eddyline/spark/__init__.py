"""The host adapter: everything that knows Spark."""
