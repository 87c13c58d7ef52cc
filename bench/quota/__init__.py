"""Services with quotas that nobody has told of."""
