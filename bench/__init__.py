"""Measurements: the papers' figures, and Eddyline beside its peers."""
