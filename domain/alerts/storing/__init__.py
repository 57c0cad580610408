"""Stores deliveries: each opens, updates or resolves alerts in one transaction."""
