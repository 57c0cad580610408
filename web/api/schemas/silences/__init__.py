"""Silences and maintenance windows."""
