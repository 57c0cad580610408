"""Signing in: limited attempts, the second factor, and the sessions that follow."""
