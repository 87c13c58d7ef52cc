"""Queries over text and records, with functions as people write them."""
