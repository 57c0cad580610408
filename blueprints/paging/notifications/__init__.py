"""Contacts, channels, and the links of messages."""
