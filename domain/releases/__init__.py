"""Release numbers."""
