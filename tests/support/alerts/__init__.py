"""Senders of alerts, their payloads, and the expected alerts."""
