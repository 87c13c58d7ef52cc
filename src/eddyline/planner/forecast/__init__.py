"""What the paid calls of a query will come to, found out on a sample before they are made."""
