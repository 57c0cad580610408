"""OAuth grants, with one module for each grant."""
