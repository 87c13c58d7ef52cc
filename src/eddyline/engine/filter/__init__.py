"""Filter blocks in an eddy."""
