"""Incidents: problems that users work on, which are opened manually or by rules for alerts."""
