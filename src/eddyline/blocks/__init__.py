"""Blocks as frozen data, which travel from plans to tasks, and reasons to decline."""
