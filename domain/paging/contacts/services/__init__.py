"""Messaging services, and the form fields in which users enter their contacts."""
