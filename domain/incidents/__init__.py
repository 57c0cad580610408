"""Incidents: problems that people work on, opened by hand or from alerts by rules."""
