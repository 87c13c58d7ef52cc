"""From a DataFrame to one that adapts: plans read, blocks claimed, plans rewritten."""
