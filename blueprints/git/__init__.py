"""Git over HTTPS, and repository pages."""
