"""Make lists of a million alerts quick: indexes, full-text search, and counts by day.

Triggers keep what a list needs beside the alerts: words to search, how many a day opened, and the
environments that alerts name. They run in the transaction that stores the alert, whichever way it
took, and cost nothing when an event is only counted.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_WORDS = ("title", "description", "service", "monitoring_tool", "hosts", "environment")
_PUNCTUATION = "!\"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~"
_BLANKS = " " * (len(_PUNCTUATION) - 1)

#: Punctuation goes first: Postgres would read "web-1" as "web" and the number -1, and an address
#: or a path as one word. The project goes in as a word that nobody can type.
_DOCUMENT = (
    f"to_tsvector('simple', translate(concat_ws(' ', {', '.join(_WORDS)}), "
    f"'{_PUNCTUATION}', '{_BLANKS}')) || array_to_tsvector(ARRAY['project:' || project_id])"
)
_COUNT_DAYS = """
INSERT INTO alert_days (project_id, day, environment, severity, alerts)
SELECT project_id, {day}, coalesce(environment, ''), severity, count(*)
FROM {source} GROUP BY 1, 2, 3, 4
"""
_NAME_ENVIRONMENTS = """
INSERT INTO environments (project_id, name, created_at)
SELECT project_id, environment, min(created_at) FROM {source} AS new_ones
WHERE environment IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM environments AS known
  WHERE known.project_id = new_ones.project_id AND known.name = new_ones.environment
)
GROUP BY project_id, environment
"""
_POSTGRES_DAY = "(created_at AT TIME ZONE 'UTC')::date"
_SQLITE_DAY = "substr(created_at, 1, 10)"

_ON_POSTGRES = (
    """
    CREATE TABLE alert_search (
      alert_id BIGINT NOT NULL CONSTRAINT pk_alert_search PRIMARY KEY
        CONSTRAINT fk_alert_search_alert_id REFERENCES alerts (id) ON DELETE CASCADE,
      document TSVECTOR NOT NULL
    )
    """,
    f"INSERT INTO alert_search SELECT id, {_DOCUMENT} FROM alerts",  # noqa: S608 - as below
    "CREATE INDEX ix_alert_search_document ON alert_search USING gin (document)",
    """
    CREATE FUNCTION alerts_with(words TSQUERY, of_project BIGINT, most INT) RETURNS SETOF BIGINT
    LANGUAGE sql STABLE
    -- Of a word that it has never seen, the planner thinks that many alerts have it.
    SET enable_seqscan = off
    AS $$
      SELECT alert_id FROM alert_search
      WHERE document @@ (words && ('''project:' || of_project || '''')::tsquery)
        AND numnode(words) > 0
      LIMIT most
    $$
    """,
    _COUNT_DAYS.format(day=_POSTGRES_DAY, source="alerts"),
    _NAME_ENVIRONMENTS.format(source="alerts"),
    f"""
    CREATE FUNCTION alerts_added() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NOT EXISTS (SELECT FROM added) THEN
        RETURN NULL;
      END IF;
      INSERT INTO alert_search SELECT id, {_DOCUMENT} FROM added;
      {_COUNT_DAYS.format(day=_POSTGRES_DAY, source="added")}
      ON CONFLICT (project_id, day, environment, severity)
      DO UPDATE SET alerts = alert_days.alerts + excluded.alerts;
      {_NAME_ENVIRONMENTS.format(source="added")}
      ON CONFLICT (project_id, name) DO NOTHING;
      RETURN NULL;
    END $$
    """,  # noqa: S608 - constants of this file
    """
    CREATE TRIGGER alerts_added AFTER INSERT ON alerts REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION alerts_added()
    """,
)

_COLUMNS = ", ".join(_WORDS)
_ON_SQLITE = (
    f"""
    CREATE VIRTUAL TABLE alert_search
    USING fts5({_COLUMNS}, content='alerts', content_rowid='id', tokenize='unicode61')
    """,
    "INSERT INTO alert_search (alert_search) VALUES ('rebuild')",
    _COUNT_DAYS.format(day=_SQLITE_DAY, source="alerts"),
    _NAME_ENVIRONMENTS.format(source="alerts"),
    f"""
    CREATE TRIGGER alerts_added AFTER INSERT ON alerts BEGIN
      INSERT INTO alert_search (rowid, {_COLUMNS})
      VALUES (new.id, {", ".join(f"new.{name}" for name in _WORDS)});
      INSERT INTO alert_days (project_id, day, environment, severity, alerts)
      VALUES (new.project_id, substr(new.created_at, 1, 10), coalesce(new.environment, ''),
        new.severity, 1)
      ON CONFLICT (project_id, day, environment, severity) DO UPDATE SET alerts = alerts + 1;
      INSERT INTO environments (project_id, name, created_at)
      SELECT new.project_id, new.environment, new.created_at WHERE new.environment IS NOT NULL
      ON CONFLICT (project_id, name) DO NOTHING;
    END
    """,  # noqa: S608 - constants of this file
    f"""
    CREATE TRIGGER alerts_removed AFTER DELETE ON alerts BEGIN
      INSERT INTO alert_search (alert_search, rowid, {_COLUMNS})
      VALUES ('delete', old.id, {", ".join(f"old.{name}" for name in _WORDS)});
    END
    """,  # noqa: S608 - constants of this file
)

_NEW_INDEXES = (
    ("ix_alerts_started", ("project_id", "status", "started_at", "id"), None),
    (
        "ix_alerts_urgency",
        ("project_id", "status", sa.text("(-severity)"), "started_at", "id"),
        None,
    ),
    (
        "ix_alerts_environment",
        ("project_id", "environment", "status", "started_at", "id"),
        "environment IS NOT NULL",
    ),
    (
        "ix_alerts_service",
        ("project_id", "service", "status", "started_at", "id"),
        "service IS NOT NULL",
    ),
    ("ix_alerts_integration", ("integration_id", "status", "started_at", "id"), None),
)


def upgrade() -> None:
    """Go forward."""
    for name, columns, condition in _NEW_INDEXES:
        where = sa.text(condition) if condition else None
        op.create_index(name, "alerts", columns, postgresql_where=where, sqlite_where=where)
    # Each is the beginning of a new one.
    op.drop_index("ix_alerts_project_id_status_id", "alerts")
    op.drop_index("ix_alerts_integration_id", "alerts")
    op.create_table(
        "alert_days",
        sa.Column("project_id", BIG, autoincrement=False, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("environment", sa.String(length=255), nullable=False),
        sa.Column("severity", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("alerts", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_alert_days_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint(
            *("project_id", "day", "environment", "severity"), name="pk_alert_days"
        ),
    )
    for statement in _ON_POSTGRES if _is_postgres() else _ON_SQLITE:
        op.execute(statement)


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def downgrade() -> None:
    """Go back."""
    op.execute("DROP TRIGGER alerts_added" + (" ON alerts" if _is_postgres() else ""))
    if _is_postgres():
        op.execute("DROP FUNCTION alerts_added, alerts_with")
    else:
        op.execute("DROP TRIGGER alerts_removed")
    op.drop_table("alert_search")
    op.drop_table("alert_days")
    op.create_index("ix_alerts_integration_id", "alerts", ["integration_id"])
    op.create_index("ix_alerts_project_id_status_id", "alerts", ["project_id", "status", "id"])
    for name, _, _ in _NEW_INDEXES:
        op.drop_index(name, "alerts")
