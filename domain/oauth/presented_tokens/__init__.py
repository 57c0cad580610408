"""Presented access tokens: bearer tokens, and those bound to a key (DPoP)."""
