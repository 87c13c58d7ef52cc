"""Answers that grow while a query runs: estimates with intervals, and how people look at them."""
