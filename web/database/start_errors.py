"""Reasons why the service cannot start."""


class CannotStartError(Exception):
    """Error with a message about an external problem that prevents the start."""


class DatabaseUnavailableError(CannotStartError):
    """Error for a database that does not respond or rejects the connection."""
