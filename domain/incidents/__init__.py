"""Incidents: problems that people work on, opened manually or by rules for alerts."""
