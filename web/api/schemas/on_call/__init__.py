"""Schedules, rotations, and escalation policies."""
