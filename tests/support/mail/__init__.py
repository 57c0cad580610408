"""A mail server, and what waits to be sent to it."""
