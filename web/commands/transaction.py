"""Functions that commands share: transactions, lookups by path, and error messages."""

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, NoReturn, TypeVar, cast

import click
from flask.cli import with_appcontext
from sqlalchemy.exc import DataError, DBAPIError

from domain.core.errors import DomainError, InvalidError, NotFoundError
from domain.core.secret_keys import register_key_use
from domain.projects.access import resolve_group, resolve_project
from domain.projects.views import ProjectOrGroup, ProjectView, Viewer
from web.commands.output import print_result
from web.database.start_errors import CannotStartError
from web.extensions import db
from web.logging import mask_secrets
from web.services import get_current_time, get_services
from web.settings.reader import SettingsError

#: Viewer of the command line, which has all permissions.
COMMAND_LINE_VIEWER = Viewer(user_id=None, is_admin=True)
Command = TypeVar("Command", bound=Callable[..., Any])


def run_in_transaction(command: Command) -> Command:
    """Run a command in a transaction and print its result, or print the error and exit with 1.

    With a wrong secret key, the command does nothing, because other hosts could not decrypt its
    results.
    """

    @wraps(command)
    def check_first(**options: Any) -> Mapping[str, Any]:
        _register_key()
        answer: Mapping[str, Any] = command(**options)
        return answer

    return cast("Command", run_without_key_check(check_first))


def _exit_with_error(sentence: str) -> NoReturn:
    db.session.rollback()
    click.echo(json.dumps({"error": sentence}, ensure_ascii=False), err=True)
    sys.exit(1)


def _register_key() -> None:
    try:
        register_key_use(get_services().keyring, session=db.session(), now=get_current_time())
        # Commit the key first: the command may take a long time, and other hosts may register keys
        # meanwhile.
        db.session.commit()
    except DBAPIError as error:
        raise InvalidError(describe_known_error(error) or "") from error


def run_without_key_check(command: Command) -> Command:
    """Run a command in a transaction without checking the secret key, for key commands."""

    @wraps(command)
    @with_appcontext
    def run(**options: Any) -> None:
        try:
            answer: Mapping[str, Any] = command(**options)
            db.session.commit()
        except DataError:
            _exit_with_error(
                "A value is too long, or contains a character that cannot be stored, such as NUL."
            )
        except (DomainError, SettingsError, ValueError) as error:
            _exit_with_error(str(error))
        print_result(answer)

    return cast("Command", run)


def get_project_by_path(path: str) -> ProjectView:
    """Return the project with this current or previous path.

    Raise NotFoundError if there is no such project.
    """
    return resolve_project(path, COMMAND_LINE_VIEWER, session=db.session())


def get_namespace_by_path(path: str) -> ProjectOrGroup:
    """Return the project or group with this current or previous path.

    Raise NotFoundError if there is no such project or group.
    """
    with suppress(NotFoundError):
        return get_project_by_path(path)
    with suppress(NotFoundError):
        return resolve_group(path, COMMAND_LINE_VIEWER, session=db.session())
    message = f'Group or project "{path}" not found.'
    raise NotFoundError(message)


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
