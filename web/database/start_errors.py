"""Reasons why the service cannot start."""


class CannotStartError(Exception):
    """Error with one sentence for an external reason that prevents the start."""


class DatabaseUnavailableError(CannotStartError):
    """Error for an unavailable database."""
