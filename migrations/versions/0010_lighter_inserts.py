"""Make alerts cheaper to store on Postgres, and to count once more.

`translate` looks each character up in the whole list of punctuation: for an ordinary alert that
took longer than all else its words need. A regular expression gives the same text.

Words are only ever written for an alert that is just being stored, so nothing has to look whether
it is there. They go with their alert by a trigger, as on SQLite.

Counting another event writes the row anew. Where there is room for that on its own page, none of
the eleven indexes has to know.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_WORDS = "concat_ws(' ', title, description, service, monitoring_tool, hosts, environment)"
_PUNCTUATION = "!\"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~"
_ANY_OF_IT = "[]!\"#$%&''()*+,./:;<=>?@[^_`{|}~\\\\-]"
_BY_EXPRESSION = f"regexp_replace({_WORDS}, '{_ANY_OF_IT}', ' ', 'g')"
_BY_TRANSLATION = f"translate({_WORDS}, '{_PUNCTUATION}', '{' ' * (len(_PUNCTUATION) - 1)}')"


def _added(words: str) -> str:
    """Return the trigger's function of migration 0008, with how it gets words to search."""
    return f"""
    CREATE OR REPLACE FUNCTION alerts_added() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NOT EXISTS (SELECT FROM added) THEN
        RETURN NULL;
      END IF;
      INSERT INTO alert_search
      SELECT id,
        to_tsvector('simple', {words}) || array_to_tsvector(ARRAY['project:' || project_id])
      FROM added;
      INSERT INTO alert_day_additions (project_id, day, environment, severity, alerts)
      SELECT project_id, (created_at AT TIME ZONE 'UTC')::date, coalesce(environment, ''), severity,
        count(*)
      FROM added GROUP BY 1, 2, 3, 4;
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
    if not _is_postgres():
        return
    op.execute(_added(_BY_EXPRESSION))
    op.execute(
        """
        CREATE FUNCTION alerts_removed() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          DELETE FROM alert_search WHERE alert_id = OLD.id;
          RETURN NULL;
        END $$
        """
    )
    op.execute(
        """
        CREATE TRIGGER alerts_removed AFTER DELETE ON alerts
        FOR EACH ROW EXECUTE FUNCTION alerts_removed()
        """
    )
    op.drop_constraint("fk_alert_search_alert_id", "alert_search")
    op.execute("ALTER TABLE alerts SET (fillfactor = 80)")


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def downgrade() -> None:
    """Go back."""
    if not _is_postgres():
        return
    op.execute("ALTER TABLE alerts RESET (fillfactor)")
    op.create_foreign_key(
        *("fk_alert_search_alert_id", "alert_search", "alerts", ["alert_id"], ["id"]),
        ondelete="CASCADE",
    )
    op.execute("DROP TRIGGER alerts_removed ON alerts")
    op.execute("DROP FUNCTION alerts_removed")
    op.execute(_added(_BY_TRANSLATION))
