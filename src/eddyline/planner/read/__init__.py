"""Spark's plans, read: chains, regions, and what expressions mean."""
