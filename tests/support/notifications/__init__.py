"""Contacts, pages, and the services that receive messages."""
