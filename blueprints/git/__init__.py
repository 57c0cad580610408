"""Git over HTTPS, and pages of repositories."""
