"""Execution of commands in transactions, and the error messages of commands."""

import json
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NoReturn, TypeVar, cast

import click
from flask.cli import with_appcontext
from sqlalchemy.exc import DataError, DBAPIError

from domain.core.errors import DomainError, InvalidError
from domain.core.secret_keys import check_and_record_key_use
from web.commands.output import print_result
from web.database.startup_errors import CannotStartError
from web.extensions import db
from web.logging import mask_secrets
from web.services import get_current_time, get_services
from web.settings.environment import SettingsError

Command = TypeVar("Command", bound=Callable[..., Any])


def run_in_transaction(command: Command) -> Command:
    """Run a command in a transaction and print its result, or print the error and exit with 1.

    With a wrong secret key, the command does nothing, because other hosts could not decrypt its
    results.
    """

    @wraps(command)
    def run_with_key_check(**options: Any) -> Mapping[str, Any]:
        _check_secret_key()
        answer: Mapping[str, Any] = command(**options)
        return answer

    return cast("Command", run_without_key_check(run_with_key_check))


def _exit_with_error(sentence: str) -> NoReturn:
    db.session.rollback()
    click.echo(json.dumps({"error": sentence}, ensure_ascii=False), err=True)
    sys.exit(1)


def _check_secret_key() -> None:
    try:
        check_and_record_key_use(
            get_services().keyring, session=db.session(), now=get_current_time()
        )
        # Commit the key first: the command may take a long time, and other hosts may register keys
        # meanwhile.
        db.session.commit()
    except DBAPIError as error:
        raise InvalidError(describe_known_error(error) or "") from error


def run_without_key_check(command: Command) -> Command:
    """Run a key management command in a transaction without checking the secret key."""

    @wraps(command)
    @with_appcontext
    def run(**options: Any) -> None:
        try:
            answer: Mapping[str, Any] = command(**options)
            db.session.commit()
        # SQLite raises OverflowError for numbers with more than 64 bits.
        except (DataError, OverflowError):
            _exit_with_error(
                "A value is too long, or contains a character that cannot be stored, such as NUL."
            )
        except (DomainError, SettingsError, ValueError) as error:
            _exit_with_error(str(error))
        print_result(answer)

    return cast("Command", run)


def describe_known_error(error: Exception) -> str | None:
    """Return an error message without secrets, or None for an internal error."""
    if isinstance(error, DBAPIError):
        reason = mask_secrets(str(error.orig).strip().partition("\n")[0])
        return f"The database cannot be used, or was not migrated with `make migrate`: {reason}"
    if isinstance(error, SettingsError | CannotStartError | DomainError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return None
