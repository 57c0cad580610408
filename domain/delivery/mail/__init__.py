"""Outgoing e-mail: an outbox in the database, and delivery by SMTP."""
