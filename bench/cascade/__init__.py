"""Cascades with a guarantee: whether it holds, and how many calls of the oracle it takes."""
