"""Faults of the database itself."""
