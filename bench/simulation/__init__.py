"""Eddies on a virtual clock and a virtual processor."""
