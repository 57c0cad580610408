"""Maintenance windows: times, once or recurring, in which alerts page nobody."""
