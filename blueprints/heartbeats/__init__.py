"""Heartbeats: pages, and the receiver of pings."""
