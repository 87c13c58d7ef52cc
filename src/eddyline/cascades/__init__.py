"""Which rows a cascade's proxy may decide, so that its targets hold: statistics alone."""
