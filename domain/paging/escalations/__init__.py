"""Escalation policies, the routes to them, and the escalations of alerts."""
