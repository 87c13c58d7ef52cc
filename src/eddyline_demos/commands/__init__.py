"""The commands of the demos."""
