"""Migrations come in order, and lead to what the models say, on each kind of database."""

import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

from models import Base
from web.database import MIGRATIONS, open_engine
from web.settings import Settings


@pytest.fixture
def engine(settings: Settings) -> Iterator[Engine]:
    opened = open_engine(settings)
    yield opened
    opened.dispose()


@pytest.fixture
def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return ScriptDirectory.from_config(config)


def test_migrations_are_numbered_without_a_gap() -> None:
    names = sorted(file.name for file in (MIGRATIONS / "versions").glob("*.py"))
    assert names
    for number, name in zip(count(1), names, strict=False):
        assert re.fullmatch(rf"{number:04}_[a-z0-9_]+\.py", name)


def test_each_migration_follows_the_one_before(scripts: ScriptDirectory) -> None:
    assert len(scripts.get_heads()) == 1
    assert [script.revision for script in scripts.walk_revisions()] == sorted(
        (script.revision for script in scripts.walk_revisions()), reverse=True
    )


def is_mapped(name: str | None, kind: str, _parents: Any) -> bool:
    """Leave out the words to search: another table on each kind of database, and no model."""
    return kind != "table" or not (name or "").startswith("alert_search")


# Such an index cannot be read back from SQLite; Postgres compares it.
@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based")
def test_migrations_and_models_say_the_same(engine: Engine) -> None:
    with engine.connect() as connection:
        options = {"compare_type": True, "include_name": is_mapped}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []
