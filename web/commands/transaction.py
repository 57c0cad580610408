"""What every command shares: one transaction, one JSON object."""

import json
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import click
from flask.cli import with_appcontext

from domain.errors import DomainError
from web.extensions import db
from web.settings import SettingsError

Command = TypeVar("Command", bound=Callable[..., Any])


def one_transaction(command: Command) -> Command:
    """Commit what the command did and print its answer; or print what was wrong and leave 1."""

    @wraps(command)
    @with_appcontext
    def run(**options: Any) -> None:
        try:
            answer: Mapping[str, Any] = command(**options)
            db.session.commit()
        except (DomainError, SettingsError, ValueError) as error:
            db.session.rollback()
            click.echo(json.dumps({"error": str(error)}, ensure_ascii=False), err=True)
            sys.exit(1)
        click.echo(json.dumps(answer, ensure_ascii=False))

    return cast("Command", run)
