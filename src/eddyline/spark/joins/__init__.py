"""Join blocks: inner joins, with the filters and projections among them, in eddies."""
