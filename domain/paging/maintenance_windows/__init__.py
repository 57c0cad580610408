"""Maintenance windows: single or recurring periods in which alerts do not page anyone."""
