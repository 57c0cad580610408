"""Alerts: reading what monitoring tools send, grouping, storing, listing and handling it."""
