"""Applications, and what the endpoints of OAuth take and return."""
