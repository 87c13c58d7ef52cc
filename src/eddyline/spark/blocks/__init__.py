"""Blocks as plain data: what travels from the plan to the workers."""
