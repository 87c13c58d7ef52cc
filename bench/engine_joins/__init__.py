"""The join engine by itself against DuckDB and Polars on one thread."""
