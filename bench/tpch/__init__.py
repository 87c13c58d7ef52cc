"""TPC-H: 22 queries over eight tables, as Spark runs them and adapted."""
