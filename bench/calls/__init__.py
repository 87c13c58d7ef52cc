"""Generated queries, and how often they call functions with and without eddies."""
