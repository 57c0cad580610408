"""A mail server, and messages that wait to be sent."""
