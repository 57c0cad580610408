"""Paging for alerts: schedules, escalation policies, silences, contacts and messages."""
