"""Functions that cost next to nothing: what their calls cost beside them, in Spark and here."""
