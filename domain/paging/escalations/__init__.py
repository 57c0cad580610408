"""Escalation policies, alert routes, and the escalations of alerts."""
