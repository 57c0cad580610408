"""Senders of alerts, what they send, and what must come of it."""
