"""Messaging services, whose contacts users enter in the fields of a form."""
