"""The host: a session that works at once, Java, and the versions of PySpark."""
