"""Signed messages to URLs that users enter: claims, retries, signatures and secrets."""
