"""Queries by others, written from the documentation alone."""
