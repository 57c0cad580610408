"""Heartbeats: jobs send pings, and an alert opens if a ping is missing."""
