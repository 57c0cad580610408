"""Requests of OAuth and OpenID Connect, one at a time."""
