"""Windowed aggregates of many standing queries, computed once for what queries share."""
