"""Contacts, channels, links of messages, and the queue."""
