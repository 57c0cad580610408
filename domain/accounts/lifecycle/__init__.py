"""Actions with which users and administrators manage accounts."""
