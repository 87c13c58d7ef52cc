"""Blocks, put back into the plan."""
