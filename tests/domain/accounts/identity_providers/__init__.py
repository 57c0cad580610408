"""Signing in through others, without an app."""
