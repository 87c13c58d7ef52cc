"""What tasks do for standing queries."""
