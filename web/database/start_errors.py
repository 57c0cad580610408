"""Reasons why the service cannot start."""


class CannotStartError(Exception):
    """The service cannot start for an external reason; the text is one sentence."""


class DatabaseUnavailableError(CannotStartError):
    """The database is unavailable."""
