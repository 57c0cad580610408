"""Record when the sign-ins of applications end."""

import sqlalchemy as sa
from alembic import op

revision = "0124"
down_revision = "0123"
branch_labels = None
depends_on = None

_IS_ENDED = "OLD.sign_in_id IS NOT NULL AND NEW.sign_in_id IS NULL"
#: Statement with the current time in the format in which SQLAlchemy stores times.
_SET_ON_SQLITE = """
UPDATE backchannel_sessions SET ended_at = strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'
WHERE id = NEW.id
"""


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column(
        "backchannel_sessions", sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True)
    )
    if op.get_bind().dialect.name == "postgresql":
        _execute(
            """
            CREATE FUNCTION backchannel_session_ended() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
              NEW.ended_at = clock_timestamp();
              RETURN NEW;
            END $$
            """
        )
        _execute(
            "CREATE TRIGGER backchannel_session_ended BEFORE UPDATE OF sign_in_id "
            f"ON backchannel_sessions FOR EACH ROW WHEN ({_IS_ENDED}) "
            "EXECUTE FUNCTION backchannel_session_ended()"
        )
        return
    _execute(
        "CREATE TRIGGER backchannel_session_ended AFTER UPDATE OF sign_in_id "
        f"ON backchannel_sessions WHEN {_IS_ENDED} BEGIN {_SET_ON_SQLITE}; END"
    )


def downgrade() -> None:
    """Downgrade the schema."""
    if op.get_bind().dialect.name == "postgresql":
        _execute("DROP TRIGGER backchannel_session_ended ON backchannel_sessions")
        _execute("DROP FUNCTION backchannel_session_ended")
    else:
        _execute("DROP TRIGGER backchannel_session_ended")
    op.drop_column("backchannel_sessions", "ended_at")


def _execute(statement: str) -> None:
    op.execute(sa.text(statement.replace(":", "\\:")))
