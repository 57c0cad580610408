"""Applies the release schedule to requests, and records affected calls."""
