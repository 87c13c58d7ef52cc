"""Join blocks in an eddy."""
