"""Which blocks are worth it, and why others are not."""
