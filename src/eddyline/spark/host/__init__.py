"""The host: a session, a Java, and Catalyst in its JVM."""
