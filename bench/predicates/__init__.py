"""Python predicates in Spark filters, against their opponents."""
