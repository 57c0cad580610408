"""Sentences about what stops a command: a wrong setting, or a database that is away."""

from sqlalchemy.exc import DBAPIError

from domain.errors import DomainError
from web.database.start_checks import CannotStartError
from web.logging import without_secrets
from web.settings.reader import SettingsError


def sentence_about(error: Exception) -> str | None:
    """Return a sentence without secrets, or None for an error of the program itself."""
    if isinstance(error, DBAPIError):
        reason = without_secrets(str(error.orig).strip().partition("\n")[0])
        return f"The database cannot be used, or `make migrate` was not run: {reason}"
    if isinstance(error, SettingsError | CannotStartError | DomainError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return None
