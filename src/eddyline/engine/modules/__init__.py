"""What an eddy routes tuples to."""
