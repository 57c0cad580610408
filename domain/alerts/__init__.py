"""Alerts: intake from monitoring tools, grouping, storage, lists, and handling by users."""
