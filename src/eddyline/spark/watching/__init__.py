"""Watching a query: its block runs where the watcher is, and Spark scans."""
