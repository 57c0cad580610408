"""Signed or encrypted state in forms and sessions, for one purpose and a limited time."""
