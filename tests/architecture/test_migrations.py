"""Migrations are numbered in order and result in the schema of the models, on both databases."""

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

from models import Base
from web.database.engine import open_engine
from web.database.schema import MIGRATIONS_FOLDER, get_newest_known_revision
from web.settings.environment import Settings

#: Number of the first migration after 0.1.0
#: (docs/adr/0063-start-migrations-at-0-1-0-and-never-rewrite-them.md).
_FIRST = 51


@pytest.fixture
def engine(settings: Settings) -> Iterator[Engine]:
    opened = open_engine(settings)
    yield opened
    opened.dispose()


@pytest.fixture
def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    return ScriptDirectory.from_config(config)


def test_migrations_are_numbered_without_a_gap() -> None:
    names = sorted(file.name for file in (MIGRATIONS_FOLDER / "versions").glob("*.py"))
    assert names
    for number, name in zip(count(_FIRST), names, strict=False):
        assert re.fullmatch(rf"{number:04}_[a-z0-9_]+\.py", name)


def test_each_migration_follows_the_one_before(scripts: ScriptDirectory) -> None:
    assert len(scripts.get_heads()) == 1
    assert [script.revision for script in scripts.walk_revisions()] == sorted(
        (script.revision for script in scripts.walk_revisions()), reverse=True
    )


def test_file_numbers_match_alembic_revisions(scripts: ScriptDirectory) -> None:
    for script in scripts.walk_revisions():
        assert Path(script.path).name.startswith(f"{script.revision}_")
    assert get_newest_known_revision() == scripts.get_current_head()


#: Table in which a migration notes that it breaks older code (ADR 26).
_RECORDED_IN = "schema_support"
_DESTRUCTIVE = re.compile(
    r"\.drop_(table|column)\(|new_column_name|rename_table|DROP (TABLE|COLUMN)"
)


def is_silently_destructive(source: str) -> bool:
    upgrade = source.partition("def upgrade")[2].partition("def downgrade")[0]
    return bool(_DESTRUCTIVE.search(upgrade)) and _RECORDED_IN not in upgrade


def test_a_destructive_migration_records_the_code_that_it_breaks() -> None:
    files = sorted((MIGRATIONS_FOLDER / "versions").glob("0*.py"))
    assert files
    assert not [file.name for file in files if is_silently_destructive(file.read_text())]


def test_destructive_migrations_are_recognized() -> None:
    dropping = 'def upgrade():\n    op.drop_column("users", "name")\n'
    assert is_silently_destructive(dropping)
    assert not is_silently_destructive(f"{dropping}    op.execute(…{_RECORDED_IN}…)\n")
    assert not is_silently_destructive(f"def upgrade():\n    pass\ndef downgrade():\n{dropping}")


def is_mapped(name: str | None, kind: str, _parents: Any) -> bool:
    """Exclude the search tables: they differ between the databases and have no model."""
    return kind != "table" or not (name or "").startswith(("alert_search", "incident_search"))


# SQLite cannot return such an index; Postgres compares it.
@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based")
def test_migrations_match_the_models(engine: Engine) -> None:
    with engine.connect() as connection:
        options = {"compare_type": True, "include_name": is_mapped}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []
