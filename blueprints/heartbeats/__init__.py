"""Heartbeat pages, and the endpoints that receive pings."""
