"""Let alerts of one project come in side by side on Postgres: no row is written by all of them.

Numbers come from a sequence for each project that has an integration; they are unique and never
used again, and one that nobody got is left out. What a day opened is noted in rows of their own,
which the worker adds up. SQLite has one writer at a time in any case, and stays as it was.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_NUMBERS = (
    """
    CREATE FUNCTION alert_numbers_begin() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      taken int;
    BEGIN
      PERFORM pg_advisory_xact_lock(hashtext('alert_numbers'), NEW.project_id::int);
      IF to_regclass('alert_iids_' || NEW.project_id) IS NULL THEN
        SELECT last_iid INTO taken FROM alert_counters WHERE project_id = NEW.project_id;
        EXECUTE format(
          'CREATE SEQUENCE alert_iids_%s AS integer START %s', NEW.project_id, taken + 1);
      END IF;
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER alert_numbers_begin AFTER INSERT ON integrations
    FOR EACH ROW EXECUTE FUNCTION alert_numbers_begin()
    """,
    """
    CREATE FUNCTION alert_numbers_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      EXECUTE format('DROP SEQUENCE IF EXISTS alert_iids_%s', OLD.project_id);
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER alert_numbers_end AFTER DELETE ON alert_counters
    FOR EACH ROW EXECUTE FUNCTION alert_numbers_end()
    """,
    """
    DO $$
    DECLARE
      counter record;
    BEGIN
      FOR counter IN
        SELECT project_id, last_iid FROM alert_counters
        WHERE project_id IN (SELECT project_id FROM integrations)
      LOOP
        EXECUTE format('CREATE SEQUENCE alert_iids_%s AS integer START %s',
          counter.project_id, counter.last_iid + 1);
      END LOOP;
    END $$
    """,
)
#: The same as in migration 0006, but for the days.
_PUNCTUATION = "!\"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~"
_BLANKS = " " * (len(_PUNCTUATION) - 1)
_WORDS = "title, description, service, monitoring_tool, hosts, environment"
_COUNT_UP = (
    "ON CONFLICT (project_id, day, environment, severity) "
    "DO UPDATE SET alerts = alert_days.alerts + excluded.alerts"
)


def _added(days: str, conflict: str) -> str:
    """Return the trigger's function, with where the days are counted and how."""
    return f"""
    CREATE OR REPLACE FUNCTION alerts_added() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NOT EXISTS (SELECT FROM added) THEN
        RETURN NULL;
      END IF;
      INSERT INTO alert_search
      SELECT id,
        to_tsvector('simple', translate(concat_ws(' ', {_WORDS}), '{_PUNCTUATION}', '{_BLANKS}'))
        || array_to_tsvector(ARRAY['project:' || project_id])
      FROM added;
      INSERT INTO {days} (project_id, day, environment, severity, alerts)
      SELECT project_id, (created_at AT TIME ZONE 'UTC')::date, coalesce(environment, ''), severity,
        count(*)
      FROM added GROUP BY 1, 2, 3, 4
      {conflict};
      INSERT INTO environments (project_id, name, created_at)
      SELECT project_id, environment, min(created_at) FROM added AS new_ones
      WHERE environment IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM environments AS known
        WHERE known.project_id = new_ones.project_id AND known.name = new_ones.environment
      )
      GROUP BY project_id, environment
      ON CONFLICT (project_id, name) DO NOTHING;
      RETURN NULL;
    END $$
    """  # noqa: S608 - constants of this file


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "alert_day_additions",
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("environment", sa.String(length=255), nullable=False),
        sa.Column("severity", sa.SmallInteger(), nullable=False),
        sa.Column("alerts", sa.Integer(), nullable=False),
    )
    op.create_index(
        "ix_alert_day_additions_project_id_day", "alert_day_additions", ["project_id", "day"]
    )
    if _is_postgres():
        for statement in (*_NUMBERS, _added("alert_day_additions", "")):
            op.execute(statement)


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def downgrade() -> None:
    """Go back."""
    if _is_postgres():
        op.execute(_added("alert_days", _COUNT_UP))
        op.execute("DROP TRIGGER alert_numbers_begin ON integrations")
        op.execute("DROP TRIGGER alert_numbers_end ON alert_counters")
        op.execute("DROP FUNCTION alert_numbers_begin, alert_numbers_end")
        op.execute(
            """
            DO $$
            DECLARE
              counter record;
            BEGIN
              FOR counter IN SELECT project_id FROM alert_counters LOOP
                UPDATE alert_counters SET last_iid = coalesce(
                  (SELECT max(iid) FROM alerts WHERE project_id = counter.project_id), last_iid)
                WHERE project_id = counter.project_id;
                EXECUTE format('DROP SEQUENCE IF EXISTS alert_iids_%s', counter.project_id);
              END LOOP;
            END $$
            """
        )
    op.drop_table("alert_day_additions")
