"""Databases that tests start or copy, and the content of databases of running services."""
