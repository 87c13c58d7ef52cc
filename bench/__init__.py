"""Benchmarks and the figures of the papers; timings live here, never in tests."""
