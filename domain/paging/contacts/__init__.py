"""Contacts of users, and notification channels of projects and groups."""
