"""Signed messages to URLs that people choose: claims, retries, signatures and secrets."""
