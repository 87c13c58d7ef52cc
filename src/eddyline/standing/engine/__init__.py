"""Many queries over one engine, shared precisely: lineage, grouped filters, six plans."""
