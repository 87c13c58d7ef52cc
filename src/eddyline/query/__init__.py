"""What to run, as frozen data."""
