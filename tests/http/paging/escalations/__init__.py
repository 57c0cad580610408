"""Escalation policies and routes on pages, in the API and on the command line."""
