"""Let an open alert show what was said of it last, and keep what was said before.

A trigger notes each change in the activity and writes the words to search anew: so whichever way an
event took in, both follow, and an event that says nothing new costs a comparison.

`query` is empty where there is none, and NULL where it is not known: of alerts from before. So is
`deliveries.mapping`. A note with `changes` is told by that, and not by a kind of its own, which
hosts of the release before do not know.
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

#: Other tables need not be read to make this one anew.
_ALONE = {"resolve_fks": False}

#: What each further event may change, in the order in which pages tell of it.
_SHOWN = ("severity", "title", "description", "service", "monitoring_tool", "hosts", "query")
_SEARCHED = ("title", "description", "service", "monitoring_tool", "hosts", "environment")
#: As in migration 0010.
_PUNCTUATION = "[]!\"#$%&''()*+,./:;<=>?@[^_`{|}~\\\\-]"
#: A query has any length; the activity needs to show what became of it.
_LONGEST = 1000


def _all(row: str, columns: tuple[str, ...] = _SHOWN) -> str:
    return ", ".join(f"{row}.{column}" for column in columns)


def _value(row: str, column: str) -> str:
    if column == "severity":
        return f"{row}.severity"
    # An empty text is none; those columns that may be NULL are never empty.
    return f"nullif(substr({row}.{column}, 1, {_LONGEST}), '')"


def _changes(array: str, wrapped: str) -> str:
    """Return the members of an object: what was and what is of each column that differs."""
    members = []
    for column in _SHOWN:
        differs = f"OLD.{column} IS NOT NULL AND " if column == "query" else ""
        differs += f"OLD.{column} IS DISTINCT FROM NEW.{column}"
        pair = f"{array}({_value('OLD', column)}, {_value('NEW', column)})"
        members.append(f"'{column}', {wrapped}(CASE WHEN {differs} THEN {pair} END)")
    return ", ".join(members)


_NOTE = """
INSERT INTO alert_notes (alert_id, user_name, kind, text, created_at, delivery_id, changes)
SELECT NEW.id, '', 'note', '', NEW.last_event_at, NEW.delivery_id, said.changes
FROM (SELECT {changes} AS changes) AS said
WHERE CAST(said.changes AS text) <> '{{}}'
"""
_POSTGRES_NOTE = _NOTE.format(
    changes=f"json_strip_nulls(json_build_object({_changes('json_build_array', '')}))"
)
_SQLITE_NOTE = _NOTE.format(
    changes=f"json_patch('{{}}', json_object({_changes('json_array', 'json')}))"
)
_ON_POSTGRES = (
    f"""
    CREATE FUNCTION alerts_changed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      {_POSTGRES_NOTE};
      UPDATE alert_search SET document =
        to_tsvector('simple', regexp_replace(concat_ws(' ', {_all("NEW", _SEARCHED)}),
          '{_PUNCTUATION}', ' ', 'g'))
        || array_to_tsvector(ARRAY['project:' || NEW.project_id])
      WHERE alert_id = NEW.id;
      RETURN NULL;
    END $$
    """,  # noqa: S608 - constants of this file
    f"""
    CREATE TRIGGER alerts_changed AFTER UPDATE OF {", ".join(_SHOWN)} ON alerts
    FOR EACH ROW WHEN (({_all("OLD")}) IS DISTINCT FROM ({_all("NEW")}))
    EXECUTE FUNCTION alerts_changed()
    """,
)
_ON_SQLITE = (
    f"""
    CREATE TRIGGER alerts_changed AFTER UPDATE OF {", ".join(_SHOWN)} ON alerts
    WHEN ({_all("OLD")}) IS NOT ({_all("NEW")})
    BEGIN
      {_SQLITE_NOTE};
      INSERT INTO alert_search (alert_search, rowid, {", ".join(_SEARCHED)})
      VALUES ('delete', OLD.id, {_all("OLD", _SEARCHED)});
      INSERT INTO alert_search (rowid, {", ".join(_SEARCHED)})
      VALUES (NEW.id, {_all("NEW", _SEARCHED)});
    END
    """,  # noqa: S608 - constants of this file
)


def upgrade() -> None:
    """Go forward."""
    op.add_column("alerts", sa.Column("query", sa.Text()))
    op.add_column("alerts", sa.Column("severity_reason", sa.String(length=200)))
    op.add_column("alerts", sa.Column("raised_from", sa.SmallInteger()))
    op.add_column("deliveries", sa.Column("mapping", sa.JSON()))
    late = sa.Column("is_late", sa.Boolean(), server_default=sa.false(), nullable=False)
    op.add_column("occurrences", late)
    # On SQLite in a new table: a foreign key that comes with a column has no name there.
    with op.batch_alter_table("alert_notes", reflect_kwargs=_ALONE) as notes:
        notes.add_column(sa.Column("changes", sa.JSON()))
        notes.add_column(sa.Column("delivery_id", BIG))
        notes.create_foreign_key(
            *("fk_alert_notes_delivery_id", "deliveries", ["delivery_id"], ["id"]),
            ondelete="CASCADE",
        )
    op.create_index("ix_alert_notes_delivery_id", "alert_notes", ["delivery_id"])
    for statement in _ON_POSTGRES if _is_postgres() else _ON_SQLITE:
        op.execute(sa.text(statement.replace(":", "\\:")))


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def downgrade() -> None:
    """Go back."""
    op.execute("DROP TRIGGER alerts_changed" + (" ON alerts" if _is_postgres() else ""))
    if _is_postgres():
        op.execute("DROP FUNCTION alerts_changed")
    op.drop_index("ix_alert_notes_delivery_id", "alert_notes")
    with op.batch_alter_table("alert_notes", reflect_kwargs=_ALONE) as notes:
        notes.drop_constraint("fk_alert_notes_delivery_id", type_="foreignkey")
        notes.drop_column("delivery_id")
        notes.drop_column("changes")
    op.drop_column("occurrences", "is_late")
    op.drop_column("deliveries", "mapping")
    for name in ("raised_from", "severity_reason", "query"):
        op.drop_column("alerts", name)
