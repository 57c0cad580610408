"""Add incidents, what is linked to them, their timeline and rules, and words to search them by.

As with alerts, triggers keep the words beside the incidents.
"""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
#: Characters of a description that can be searched for; Postgres refuses documents over 1 MiB.
_SEARCHED = 20_000
#: As in migration 0010.
_PUNCTUATION = "[]!\"#$%&''()*+,./:;<=>?@[^_`{|}~\\\\-]"
_WORDS = f"concat_ws(' ', NEW.title, left(NEW.description, {_SEARCHED}))"
_DOCUMENT = (
    f"to_tsvector('simple', regexp_replace({_WORDS}, '{_PUNCTUATION}', ' ', 'g'))"
    " || array_to_tsvector(ARRAY['project:' || NEW.project_id])"
)

_ON_POSTGRES = (
    """
    CREATE TABLE incident_search (
      incident_id BIGINT NOT NULL CONSTRAINT pk_incident_search PRIMARY KEY
        CONSTRAINT fk_incident_search_incident_id REFERENCES incidents (id) ON DELETE CASCADE,
      document TSVECTOR NOT NULL
    )
    """,
    "CREATE INDEX ix_incident_search_document ON incident_search USING gin (document)",
    # Of migration 0016.
    """
    CREATE TRIGGER incident_search_without_accents BEFORE INSERT OR UPDATE ON incident_search
    FOR EACH ROW WHEN (NOT octet_length(NEW.document::text) = char_length(NEW.document::text))
    EXECUTE FUNCTION alert_search_without_accents()
    """,
    f"""
    CREATE FUNCTION incidents_worded() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO incident_search VALUES (NEW.id, {_DOCUMENT})
      ON CONFLICT (incident_id) DO UPDATE SET document = excluded.document;
      RETURN NULL;
    END $$
    """,  # noqa: S608 - constants of this file
    """
    CREATE TRIGGER incidents_worded AFTER INSERT OR UPDATE OF title, description ON incidents
    FOR EACH ROW EXECUTE FUNCTION incidents_worded()
    """,
    # As `alerts_with` of migration 0006.
    """
    CREATE FUNCTION incidents_with(words TSQUERY, of_project BIGINT, most INT)
    RETURNS SETOF BIGINT LANGUAGE sql STABLE SET enable_seqscan = off
    AS $$
      SELECT incident_id FROM incident_search
      WHERE document @@ (words && ('''project:' || of_project || '''')::tsquery)
        AND numnode(words) > 0
      LIMIT most
    $$
    """,
)
_FORGET = """
INSERT INTO incident_search (incident_search, rowid, title, description)
VALUES ('delete', OLD.id, OLD.title, OLD.description);
"""
_REMEMBER = """
INSERT INTO incident_search (rowid, title, description)
VALUES (NEW.id, NEW.title, NEW.description);
"""
_ON_SQLITE = (
    """
    CREATE VIRTUAL TABLE incident_search
    USING fts5(title, description, content='incidents', content_rowid='id',
      tokenize='unicode61 remove_diacritics 2')
    """,
    f"CREATE TRIGGER incidents_added AFTER INSERT ON incidents BEGIN {_REMEMBER} END",
    f"CREATE TRIGGER incidents_removed AFTER DELETE ON incidents BEGIN {_FORGET} END",
    f"""
    CREATE TRIGGER incidents_worded AFTER UPDATE OF title, description ON incidents
    BEGIN {_FORGET} {_REMEMBER} END
    """,
)


def _refers(
    table: str, column: str, target: str, ondelete: str = "CASCADE"
) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"{target}.id"], name=f"fk_{table}_{column}", ondelete=ondelete
    )


def upgrade() -> None:
    """Go forward."""
    _create_incidents()
    _create_what_belongs_to_them()
    for statement in _ON_POSTGRES if _is_postgres() else _ON_SQLITE:
        op.execute(sa.text(statement.replace(":", "\\:")))


def _create_incidents() -> None:
    op.create_table(
        "incident_counters",
        sa.Column("project_id", BIG, autoincrement=False, nullable=False),
        sa.Column("last_iid", sa.Integer(), nullable=False),
        _refers("incident_counters", "project_id", "projects"),
        sa.PrimaryKeyConstraint("project_id", name="pk_incident_counters"),
    )
    op.create_table(
        "incident_rules",
        sa.Column("id", BIG, nullable=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("conditions", sa.JSON(), nullable=False),
        sa.Column("closes_when_resolved", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        _refers("incident_rules", "project_id", "projects"),
        sa.PrimaryKeyConstraint("id", name="pk_incident_rules"),
        sa.UniqueConstraint("project_id", "name", name="uq_incident_rules_project_id_name"),
    )
    op.create_table(
        "incidents",
        sa.Column("id", BIG, nullable=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("iid", sa.Integer(), nullable=False),
        sa.Column("title", sa.String(length=255), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("urgency", sa.SmallInteger(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("closes_when_resolved", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("rule_id", BIG, nullable=True),
        sa.Column("author_id", BIG, nullable=True),
        sa.Column("author_name", sa.String(length=255), nullable=False),
        sa.Column("alerts", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("acknowledged_at", TIME, nullable=True),
        sa.Column("resolved_at", TIME, nullable=True),
        _refers("incidents", "project_id", "projects"),
        _refers("incidents", "rule_id", "incident_rules", "SET NULL"),
        _refers("incidents", "author_id", "users", "SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_incidents"),
    )
    op.create_index("uq_incidents_project_id_iid", "incidents", ["project_id", "iid"], unique=True)
    op.create_index("ix_incidents_newest", "incidents", ["project_id", "status", "id"])
    urgency = ["project_id", "status", "urgency", "id"]
    op.create_index("ix_incidents_urgency", "incidents", urgency)
    op.create_index("ix_incidents_project_id_id", "incidents", ["project_id", "id"])
    op.create_index("ix_incidents_rule_id_id", "incidents", ["rule_id", "id"])
    op.create_index("ix_incidents_author_id", "incidents", ["author_id"])


def _create_what_belongs_to_them() -> None:
    for table, column, target in (
        ("incident_alerts", "alert_id", "alerts"),
        ("incident_assignees", "user_id", "users"),
    ):
        op.create_table(
            table,
            sa.Column("incident_id", BIG, autoincrement=False, nullable=False),
            sa.Column(column, BIG, autoincrement=False, nullable=False),
            _refers(table, "incident_id", "incidents"),
            _refers(table, column, target),
            sa.PrimaryKeyConstraint("incident_id", column, name=f"pk_{table}"),
        )
        op.create_index(f"ix_{table}_{column}", table, [column])
    op.create_table(
        "incident_fingerprints",
        sa.Column("project_id", BIG, autoincrement=False, nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(length=32), nullable=False),
        sa.Column("incident_id", BIG, nullable=False),
        _refers("incident_fingerprints", "project_id", "projects"),
        _refers("incident_fingerprints", "incident_id", "incidents"),
        sa.PrimaryKeyConstraint("project_id", "fingerprint", name="pk_incident_fingerprints"),
    )
    op.create_index(
        "ix_incident_fingerprints_incident_id", "incident_fingerprints", ["incident_id"]
    )
    op.create_table(
        "incident_notes",
        sa.Column("id", BIG, nullable=False),
        sa.Column("incident_id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=True),
        sa.Column("user_name", sa.String(length=255), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.Column("is_internal", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        _refers("incident_notes", "incident_id", "incidents"),
        _refers("incident_notes", "user_id", "users", "SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_incident_notes"),
    )
    op.create_index("ix_incident_notes_incident_id_id", "incident_notes", ["incident_id", "id"])
    op.create_index("ix_incident_notes_user_id", "incident_notes", ["user_id"])


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def downgrade() -> None:
    """Go back."""
    if _is_postgres():
        op.execute("DROP TRIGGER incidents_worded ON incidents")
        op.execute("DROP FUNCTION incidents_worded, incidents_with")
    else:
        for name in ("added", "removed", "worded"):
            op.execute(f"DROP TRIGGER incidents_{name}")
    for table in (
        *("incident_search", "incident_notes", "incident_fingerprints", "incident_assignees"),
        *("incident_alerts", "incidents", "incident_rules", "incident_counters"),
    ):
        op.drop_table(table)
