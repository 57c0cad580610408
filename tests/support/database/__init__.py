"""Databases that tests start or copy, and what those of running services hold."""
