"""Errors that prevent the service from starting."""


class CannotStartError(Exception):
    """Error with a message about an external problem that prevents the service from starting."""


class DatabaseUnavailableError(CannotStartError):
    """Error for a database that does not respond or rejects the connection."""
