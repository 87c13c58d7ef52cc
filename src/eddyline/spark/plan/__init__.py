"""Spark's plans, read."""
