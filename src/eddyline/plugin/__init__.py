"""The process behind ``spark.plugins``: it adapts what an application runs that never heard of it.

The driver's JVM starts it (``PythonProcess.java``), as ``python -m eddyline.plugin``. It attaches
to the application, answers about the plans of all sessions, and ends with the JVM. The classes in
Java beside this file and some of ``catalyst`` are in the jar that the wheel brings.
"""
