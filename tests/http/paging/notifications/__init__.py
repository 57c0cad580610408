"""Contacts, channels, acknowledgement links and notification rules."""
