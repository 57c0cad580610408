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
from domain.core.secret_keys import register_use
from domain.projects.access import follow_to_group, follow_to_project
from domain.projects.views import Holder, ProjectView, Viewer
from web.commands.output import print_answer
from web.database.start_errors import CannotStartError
from web.extensions import db
from web.logging import without_secrets
from web.services import now, services
from web.settings.reader import SettingsError

#: Viewer of the command line, which has all permissions.
OPERATOR = Viewer(user_id=None, is_admin=True)
Command = TypeVar("Command", bound=Callable[..., Any])


def one_transaction(command: Command) -> Command:
    """Run a command in a transaction and print its result, or print the error and exit with 1.

    With a wrong secret key nothing is done, since no host could read the result.
    """

    @wraps(command)
    def check_first(**options: Any) -> Mapping[str, Any]:
        _take_up_key()
        answer: Mapping[str, Any] = command(**options)
        return answer

    return cast("Command", with_any_key(check_first))


def _refuse(sentence: str) -> NoReturn:
    db.session.rollback()
    click.echo(json.dumps({"error": sentence}, ensure_ascii=False), err=True)
    sys.exit(1)


def _take_up_key() -> None:
    try:
        register_use(services().keyring, session=db.session(), now=now())
        # The work may take long while other hosts register keys, so this is committed first.
        db.session.commit()
    except DBAPIError as error:
        raise InvalidError(sentence_about(error) or "") from error


def with_any_key(command: Command) -> Command:
    """Run a command in a transaction without checking the secret key, for key commands."""

    @wraps(command)
    @with_appcontext
    def run(**options: Any) -> None:
        try:
            answer: Mapping[str, Any] = command(**options)
            db.session.commit()
        except DataError:
            _refuse(
                "A value is too long, or contains a character that cannot be stored, such as NUL."
            )
        except (DomainError, SettingsError, ValueError) as error:
            _refuse(str(error))
        print_answer(answer)

    return cast("Command", run)


def project_at(path: str) -> ProjectView:
    """Return the project at a path or former path.

    Raise NotFoundError if there is none.
    """
    return follow_to_project(path, OPERATOR, session=db.session())


def holder_at(path: str) -> Holder:
    """Return the project or group at a path or former path.

    Raise NotFoundError if there is none.
    """
    with suppress(NotFoundError):
        return project_at(path)
    with suppress(NotFoundError):
        return follow_to_group(path, OPERATOR, session=db.session())
    message = f'Group or project "{path}" not found.'
    raise NotFoundError(message)


def sentence_about(error: Exception) -> str | None:
    """Return an error message without secrets, or None for an internal error."""
    if isinstance(error, DBAPIError):
        reason = without_secrets(str(error.orig).strip().partition("\n")[0])
        return f"The database cannot be used, or was not migrated with `make migrate`: {reason}"
    if isinstance(error, SettingsError | CannotStartError | DomainError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return None
