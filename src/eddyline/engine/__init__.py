"""The adaptive engine: eddies, modules and policies; it knows neither Spark nor wall time."""
