"""Whether a session lasts: what thousands of queries leave behind, and how fast they end."""
