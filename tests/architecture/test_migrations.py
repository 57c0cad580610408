"""Migrations come in order, and lead to what the models say, on each kind of database."""

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
from web.database.schema import MIGRATIONS, newest_known_revision
from web.settings.reader import Settings

#: Where release 0.1.0 ended (docs/adr/0063-start-migrations-at-0-1-0-and-never-rewrite-them.md).
_FIRST = 51


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
    for number, name in zip(count(_FIRST), names, strict=False):
        assert re.fullmatch(rf"{number:04}_[a-z0-9_]+\.py", name)


def test_each_migration_follows_the_one_before(scripts: ScriptDirectory) -> None:
    assert len(scripts.get_heads()) == 1
    assert [script.revision for script in scripts.walk_revisions()] == sorted(
        (script.revision for script in scripts.walk_revisions()), reverse=True
    )


def test_the_numbers_of_files_are_what_alembic_knows(scripts: ScriptDirectory) -> None:
    for script in scripts.walk_revisions():
        assert Path(script.path).name.startswith(f"{script.revision}_")
    assert newest_known_revision() == scripts.get_current_head()


#: Says so in `schema_support` (decision record 26).
_SAYS_SO = "schema_support"
_TAKES_AWAY = re.compile(
    r"\.drop_(table|column)\(|new_column_name|rename_table|DROP (TABLE|COLUMN)"
)


def takes_away_silently(source: str) -> bool:
    upgrade = source.partition("def upgrade")[2].partition("def downgrade")[0]
    return bool(_TAKES_AWAY.search(upgrade)) and _SAYS_SO not in upgrade


def test_a_migration_that_takes_away_says_which_code_it_breaks() -> None:
    files = sorted((MIGRATIONS / "versions").glob("0*.py"))
    assert files
    assert not [file.name for file in files if takes_away_silently(file.read_text())]


def test_what_takes_away_is_recognized() -> None:
    dropping = 'def upgrade():\n    op.drop_column("users", "name")\n'
    assert takes_away_silently(dropping)
    assert not takes_away_silently(f"{dropping}    op.execute(…{_SAYS_SO}…)\n")
    assert not takes_away_silently(f"def upgrade():\n    pass\ndef downgrade():\n{dropping}")


def is_mapped(name: str | None, kind: str, _parents: Any) -> bool:
    """Leave out the words to search: another table on each kind of database, and no model."""
    return kind != "table" or not (name or "").startswith(("alert_search", "incident_search"))


# Such an index cannot be read back from SQLite; Postgres compares it.
@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based")
def test_migrations_and_models_say_the_same(engine: Engine) -> None:
    with engine.connect() as connection:
        options = {"compare_type": True, "include_name": is_mapped}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []
