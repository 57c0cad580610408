"""Outgoing email: an outbox in the database, and delivery by SMTP."""
