"""Heartbeat pages, and the receiver of pings."""
