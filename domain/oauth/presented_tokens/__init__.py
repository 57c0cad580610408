"""Presented access tokens: bearer tokens and tokens bound to a key (DPoP)."""
