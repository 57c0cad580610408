"""Heartbeats: jobs that report themselves, and an alert when one is not heard of."""
