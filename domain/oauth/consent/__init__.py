"""Consent: approved scopes, authorized applications, pushed authorization requests."""
