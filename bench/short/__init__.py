"""Everyday queries that take well below a second, where a fixed cost shows."""
