"""What differs from version to version of PySpark, each quirk in a file, behind one interface."""
