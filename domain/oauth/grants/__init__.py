"""OAuth grants, one module each."""
