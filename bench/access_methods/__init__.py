"""The sources and queries of the SteM paper, run over SteMs and over join modules."""
