"""Releases and what is recorded of calls."""
