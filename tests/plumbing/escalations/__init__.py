"""Escalations in a database of a test's own."""
