"""Lookups over HTTP: Eddyline beside what people write by hand."""
