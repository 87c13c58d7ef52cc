"""Measurements: the papers' figures, and Eddyline beside its peers."""

import os

# Polars reads it when it is imported. It is a contestant on one thread, and compares rows.
os.environ["POLARS_MAX_THREADS"] = "1"
