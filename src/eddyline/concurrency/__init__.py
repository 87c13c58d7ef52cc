"""Ways to wait for many answers at a time: threads, and an event loop."""
