"""Outgoing webhooks: endpoints of projects, what they are sent, and what became of it."""
