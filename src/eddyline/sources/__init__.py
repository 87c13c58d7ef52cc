"""What a lookup can talk to: HTTP services, databases, Python functions."""
