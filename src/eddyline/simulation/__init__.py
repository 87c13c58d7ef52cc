"""Policies over selections of given cost, on a virtual clock and a virtual processor."""
