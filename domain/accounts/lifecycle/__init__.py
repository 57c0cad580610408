"""Actions that let users and administrators manage accounts."""
