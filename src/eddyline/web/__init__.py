"""The live page: queries in a browser, while they run."""
