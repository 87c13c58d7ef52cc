"""The routing report: what the tasks of a block record, and how it is shown to people."""
