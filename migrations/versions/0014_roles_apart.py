"""Let the role of the service do without rights on the schema, and keep old numbering out.

The triggers that make and drop the sequences of alert numbers run as their owner, who migrates.
Hosts of before migration 0008 count in `alert_counters`: what they numbered would collide with the
sequences, so sequences are brought past it, and such a host is told to be updated.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_FUNCTIONS = ("alert_numbers_begin", "alert_numbers_end")
_PAST_ALL_NUMBERS = """
DO $$
DECLARE
  taken record;
BEGIN
  FOR taken IN
    SELECT project_id, max(iid) AS iid FROM alerts
    WHERE to_regclass('alert_iids_' || project_id) IS NOT NULL GROUP BY project_id
  LOOP
    EXECUTE format('SELECT setval(%L, greatest(last_value, %s)) FROM alert_iids_%s '
      'WHERE last_value <= %s', 'alert_iids_' || taken.project_id, taken.iid, taken.project_id,
      taken.iid);
  END LOOP;
END $$
"""
_REFUSE = """
CREATE FUNCTION alert_numbers_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'this host numbers alerts as before migration 0008: update it'
    USING ERRCODE = 'feature_not_supported';
END $$
"""
_REFUSING = """
CREATE TRIGGER alert_numbers_keep BEFORE UPDATE OF last_iid ON alert_counters
FOR EACH ROW WHEN (NEW.last_iid IS DISTINCT FROM OLD.last_iid)
EXECUTE FUNCTION alert_numbers_keep()
"""


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def upgrade() -> None:
    """Go forward."""
    if not _is_postgres():
        return
    # Not what the search path of whoever fires the trigger might put first.
    schema = op.get_bind().execute(sa.text("SELECT quote_ident(current_schema())")).scalar_one()
    for function in _FUNCTIONS:
        op.execute(
            f"ALTER FUNCTION {function}() SECURITY DEFINER SET search_path = {schema}, pg_temp"
        )
    for statement in (_PAST_ALL_NUMBERS, _REFUSE, _REFUSING):
        op.execute(statement)


def downgrade() -> None:
    """Go back."""
    if not _is_postgres():
        return
    op.execute("DROP TRIGGER alert_numbers_keep ON alert_counters")
    op.execute("DROP FUNCTION alert_numbers_keep")
    for function in _FUNCTIONS:
        op.execute(f"ALTER FUNCTION {function}() SECURITY INVOKER RESET search_path")
