"""Users, their tokens, and where messages reach them."""
