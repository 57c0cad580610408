"""Webhooks, and the messages that they send."""
