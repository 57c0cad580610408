"""The first administrator of a new installation."""

from dataclasses import dataclass, field
from pathlib import Path

from flask import current_app
from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from domain.accounts.users import NewUser, create_user
from domain.clock import system_clock
from domain.errors import ConflictError
from domain.randomness import random_password
from models import User
from web.database.engine import open_engine
from web.instance_files import write_private_file
from web.settings.password_rules import password_rules
from web.settings.reader import Settings

FIRST_USERNAME = "admin"
_FILE_NAME = "first_administrator.txt"


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """What the first administrator signs in with, and the file that keeps it until changed."""

    username: str
    password: str = field(repr=False)
    path: Path


def _file(instance_path: Path) -> Path:
    return instance_path / _FILE_NAME


def ensure_first_administrator(settings: Settings) -> Credentials | None:
    """Make an administrator if there is no user at all; return the credentials if one was made."""
    engine = open_engine(settings)
    try:
        with Session(engine) as session:
            if session.scalar(select(exists().select_from(User))):
                return None
            session.rollback()  # nobody waits while the password is hashed
            with session.begin():
                return _make(settings, session)
    except ConflictError:
        return None  # another process that started at the same time was first
    finally:
        engine.dispose()


def _make(settings: Settings, session: Session) -> Credentials:
    password = random_password()
    first = NewUser(
        username=FIRST_USERNAME,
        email="admin@gatebell.example",
        name="Administrator",
        password=password,
        is_admin=True,
    )
    create_user(
        first,
        session=session,
        now=system_clock(),
        rules=password_rules(settings),
    )
    path = _file(settings.instance_path)
    write_private_file(path, f"user name: {FIRST_USERNAME}\npassword: {password}\n")
    return Credentials(username=FIRST_USERNAME, password=password, path=path)


def has_first_password(username: str) -> bool:
    """Tell whether this is the first administrator and still has the generated password."""
    return username == FIRST_USERNAME and _file(Path(current_app.instance_path)).exists()


def forget_first_password(username: str) -> None:
    """Remove the file, once the password in it opens nothing any more."""
    if username == FIRST_USERNAME:
        _file(Path(current_app.instance_path)).unlink(missing_ok=True)
