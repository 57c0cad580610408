"""Signed messages to URLs that users specify: claims, retries, signatures and secrets."""
