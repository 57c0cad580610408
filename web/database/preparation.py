"""Prepares a database for this release before the service starts."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from domain.accounts.passwords import (
    FIRST_ADMINISTRATOR_USERNAME,
    get_initial_password_path,
    has_initial_password,
)
from domain.accounts.users import NewUser, create_user
from domain.core.clock import read_system_clock
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.errors import ConflictError
from domain.core.randomness import generate_random_password
from models import User
from web.database.engine import open_engine
from web.database.schema import migrate_to_newest
from web.database.startup_checks import (
    check_schema,
    check_sessions,
    convert_database_errors,
    register_secret_key,
    should_migrate,
)
from web.instance_files import write_private_file
from web.settings.environment import Settings
from web.settings.policies.accounts import build_password_rules
from web.standard_streams import print_line


@dataclass(frozen=True, kw_only=True)
class FirstAdministratorCredentials:
    """Name and initial password of the first administrator, and the path of the password file."""

    username: str
    password: str = field(repr=False)
    path: Path


def prepare_database(settings: Settings) -> None:
    """Migrate the database and create the data that a new installation needs.

    Several processes can call this at the same time. Raise CannotStartError if the preparation
    fails.
    """
    if should_migrate(settings):
        with convert_database_errors():
            migrate_to_newest(settings)
    check_sessions(settings)
    check_schema(settings)
    register_secret_key(settings)
    with convert_database_errors():
        first = ensure_first_administrator(settings)
    if first:
        _print_first_administrator(first)
    elif has_initial_password(FIRST_ADMINISTRATOR_USERNAME, settings.instance_path):
        _require_password_change(settings)


def _print_first_administrator(credentials: FirstAdministratorCredentials) -> None:
    """Print the first administrator's name, and the password only on a terminal.

    Output that does not go to a terminal may be logged, and logs must not contain the password.
    """
    if sys.stdout.isatty():
        print_line(
            f"The first administrator is {credentials.username}. "
            f"The password is {credentials.password}"
        )
        print_line(
            f"It is shown only once, and is stored in {credentials.path} until it is changed."
        )
    else:
        print_line(
            f"The first administrator is {credentials.username}. "
            f"The password is in {credentials.path}"
        )


def ensure_first_administrator(settings: Settings) -> FirstAdministratorCredentials | None:
    """Create the first administrator if there are no users, and return the credentials.

    Return None if there are users.
    """
    engine = open_engine(settings)
    try:
        with Session(engine) as session:
            if session.scalar(select(exists().select_from(User))):
                return None
            session.rollback()  # hold no locks while the password is hashed
            with session.begin():
                return _create_first_administrator(settings, session)
    except ConflictError:
        return None  # another process has created the user in the meantime
    finally:
        engine.dispose()


def _require_password_change(settings: Settings) -> None:
    """Require the first administrator to change the initial password.

    Older releases did not require this change.
    """
    engine = open_engine(settings)
    try:
        with Session(engine) as session, session.begin():
            session.execute(
                build_bulk_update(User)
                .where(User.username == FIRST_ADMINISTRATOR_USERNAME, ~User.must_change_password)
                .values(must_change_password=True)
            )
    finally:
        engine.dispose()


def _create_first_administrator(
    settings: Settings, session: Session
) -> FirstAdministratorCredentials:
    password = generate_random_password()
    first = NewUser(
        username=FIRST_ADMINISTRATOR_USERNAME,
        email="admin@gatebell.example",
        name="Administrator",
        password=password,
        is_admin=True,
        # The password is stored in a file and may be visible on a screen.
        must_change_password=True,
    )
    create_user(
        first,
        session=session,
        now=read_system_clock(),
        rules=build_password_rules(settings),
    )
    path = get_initial_password_path(settings.instance_path)
    write_private_file(path, f"username: {FIRST_ADMINISTRATOR_USERNAME}\npassword: {password}\n")
    return FirstAdministratorCredentials(
        username=FIRST_ADMINISTRATOR_USERNAME, password=password, path=path
    )
