"""What users declare: lookup tables and concurrent functions."""
