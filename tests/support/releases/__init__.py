"""Releases and recorded calls."""
