"""Stores deliveries. Each opens, updates or resolves alerts in one transaction."""
