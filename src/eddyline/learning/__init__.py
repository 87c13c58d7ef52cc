"""What tasks have learned of functions and predicates, handed over to later blocks."""
