"""Paging: escalations and notifications, with a database and without a server."""
