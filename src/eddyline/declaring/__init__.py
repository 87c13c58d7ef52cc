"""What users declare of functions, wherever these are called then."""
