"""What runs inside Spark's tasks."""
