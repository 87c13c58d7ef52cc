"""Answers that were paid for, kept on disk: under every lookup table and concurrent function."""
