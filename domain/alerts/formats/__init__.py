"""Alert formats, each declared in its own module, and the registry of all of them."""
