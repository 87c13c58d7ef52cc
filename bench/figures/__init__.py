"""The papers' figures, drawn again: one file a figure."""
