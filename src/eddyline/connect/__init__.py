"""What Eddyline does for Spark Connect: plans are messages there, and are rewritten as such.

Nothing is installed on the server, and nothing here needs Py4J or Java: the package
``pyspark-client`` is enough.
"""
