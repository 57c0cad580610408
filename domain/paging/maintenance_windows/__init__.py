"""Maintenance windows: single or recurring periods in which alerts page nobody."""
