"""Databases without an app: a migrated one for each test, and an empty one in memory."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session

from models.base import Base
from web.database.engine import open_engine
from web.settings.environment import Settings


@pytest.fixture
def engine(settings: Settings) -> Iterator[Engine]:
    """An engine for a migrated database, of each kind in turn."""
    opened = open_engine(settings)
    yield opened
    opened.dispose()


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    """A session of a migrated database; its changes are rolled back unless a test commits."""
    with Session(engine) as opened:
        yield opened


@pytest.fixture
def in_memory() -> Iterator[Session]:
    """A session of an empty SQLite in memory, for rules that do not depend on SQL."""
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as opened:
        yield opened
    engine.dispose()
