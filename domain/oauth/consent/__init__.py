"""Consent: what users approved, authorized applications, pushed authorization requests."""
