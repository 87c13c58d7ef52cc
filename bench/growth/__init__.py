"""How time grows with the terms of a filter and with the relations of a join."""
