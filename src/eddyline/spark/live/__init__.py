"""Watching queries while they run: what tasks tell meanwhile, action by action."""
