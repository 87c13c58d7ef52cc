"""Where rows and results are kept."""
