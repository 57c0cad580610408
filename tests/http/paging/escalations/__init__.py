"""Escalation policies and routes through pages, the API and commands."""
