"""Tests that migrations which redefine SQLite tables keep rows and the references to them."""

import pytest
from sqlalchemy import text

from web.database.engine import open_engine
from web.database.schema import migrate_to_newest, migrate_to_revision
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("sqlite")

_BEFORE = "0077"
_ROWS = """
INSERT INTO groups (id, name, path, description, created_at)
VALUES (1, 'acme', 'acme', '', '2026-01-01');
INSERT INTO projects (id, group_id, name, path, visibility, created_at)
VALUES (1, 1, 'shop', 'acme/shop', 'private', '2026-01-01');
INSERT INTO escalation_policies
(id, project_id, name, is_default, steps, repeats, repeat_pause, created_at, updated_at)
VALUES (1, 1, 'Day', 0, '[]', 0, 0, '2026-01-01', '2026-01-01'),
(2, 1, 'Night', 0, '[]', 0, 0, '2026-01-01', '2026-01-01');
INSERT INTO alert_routes (project_id, name, position, conditions, policy_id, created_at, updated_at)
VALUES (1, 'Production', 1, '{}', 1, '2026-01-01', '2026-01-01');
DELETE FROM escalation_policies WHERE id = 2
"""


def test_rows_and_sequences_survive_a_new_table_definition(settings: Settings) -> None:
    migrate_to_revision(settings, _BEFORE)
    engine = open_engine(settings)
    try:
        with engine.begin() as connection:
            for statement in _ROWS.split(";"):
                connection.execute(text(statement))
        # The second time follows a downgrade, which restores the former definition.
        for _ in range(2):
            migrate_to_newest(settings)
            with engine.connect() as connection:
                routes = connection.execute(text("SELECT name, policy_id FROM alert_routes")).all()
                last = connection.scalar(
                    text("SELECT seq FROM sqlite_sequence WHERE name = 'escalation_policies'")
                )
                broken = connection.execute(text("PRAGMA foreign_key_check")).all()
            assert routes == [("Production", 1)]
            assert last == 2
            assert not broken
            migrate_to_revision(settings, _BEFORE)
    finally:
        migrate_to_newest(settings)
        engine.dispose()
