"""Groups, projects, and their members."""
