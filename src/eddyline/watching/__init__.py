"""A query watched: its block runs where the watcher is, and answers improve."""
