"""The routing report: what the tasks of a block record, and how people read it."""
