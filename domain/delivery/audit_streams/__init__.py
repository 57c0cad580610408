"""Destinations of the audit log: who gets the events, what waits for them, and how it is sent."""
