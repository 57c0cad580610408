"""Messaging services, for which users enter contacts in the fields of a form."""
