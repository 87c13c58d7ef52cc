"""User functions as index access methods, with a SteM on each: what remembers results."""
