"""Strength of keys, and TLS as a client and as a server: every limit and every context."""
