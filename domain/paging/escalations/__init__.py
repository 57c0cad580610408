"""Escalation policies, alert routes, and escalations."""
