"""Stores deliveries. Each delivery opens, updates or resolves alerts in one transaction."""
