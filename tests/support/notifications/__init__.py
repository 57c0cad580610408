"""Contacts, pages, and the services that messages go to."""
