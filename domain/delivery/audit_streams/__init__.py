"""Audit streams: destinations of the audit log, their queues and the delivery of events."""
