"""The commands, one a file; each has a function ``run``."""
