"""What streams had before a query came: events that are kept, and what new queries find in them."""
