"""Tell those who follow the alerts of a project of each change.

A trigger adds the rows in the transaction of the change, whoever makes it. Without a follower it
looks once into an index.
"""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")

_ADD = """
INSERT INTO alert_changes (follower, project_id, alert_id, kind, created_at, tries)
SELECT f.follower, NEW.project_id, NEW.id, {kind}, {now}, 0
FROM alert_followers AS f WHERE f.project_id = NEW.project_id
"""
#: A report may make an open alert more urgent (a lower rank); others say nothing new.
_IS_CHANGED = """
OLD.status <> NEW.status OR (NEW.severity < OLD.severity AND NEW.status <> 'resolved')
"""
_CHANGED = """
CASE WHEN OLD.status = NEW.status THEN 'raised'
  WHEN NEW.status = 'triggered' THEN 'reopened' ELSE NEW.status END
"""
_OPENED = "'opened'"
#: In the format in which SQLAlchemy stores times.
_SQLITE_NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'"
_ON_POSTGRES = (
    f"""
    CREATE FUNCTION alert_opened_changes() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      {_ADD.format(kind=_OPENED, now="clock_timestamp()")};
      RETURN NULL;
    END $$
    """,
    f"""
    CREATE FUNCTION alert_changed_changes() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      {_ADD.format(kind=_CHANGED, now="clock_timestamp()")};
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER alert_opened_changes AFTER INSERT ON alerts
    FOR EACH ROW WHEN (NEW.status <> 'resolved') EXECUTE FUNCTION alert_opened_changes()
    """,
    f"""
    CREATE TRIGGER alert_changed_changes AFTER UPDATE OF status, severity ON alerts
    FOR EACH ROW WHEN ({_IS_CHANGED}) EXECUTE FUNCTION alert_changed_changes()
    """,
)
_ON_SQLITE = (
    f"""
    CREATE TRIGGER alert_opened_changes AFTER INSERT ON alerts WHEN NEW.status <> 'resolved'
    BEGIN
      {_ADD.format(kind=_OPENED, now=_SQLITE_NOW)};
    END
    """,
    f"""
    CREATE TRIGGER alert_changed_changes AFTER UPDATE OF status, severity ON alerts
    WHEN {_IS_CHANGED}
    BEGIN
      {_ADD.format(kind=_CHANGED, now=_SQLITE_NOW)};
    END
    """,
)


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "alert_followers",
        sa.Column("project_id", ID, nullable=False),
        sa.Column("follower", sa.String(16), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name="fk_alert_followers_project_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("project_id", "follower", name="pk_alert_followers"),
    )
    op.create_table(
        "alert_changes",
        sa.Column("id", ID, nullable=False),
        sa.Column("follower", sa.String(16), nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("alert_id", ID, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("next_try_at", TIME),
        sa.Column("last_error", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_alert_changes"),
    )
    op.create_index("ix_alert_changes_follower_id", "alert_changes", ["follower", "id"])
    op.create_index(
        "ix_alert_changes_follower_alert_id_id", "alert_changes", ["follower", "alert_id", "id"]
    )
    for statement in _ON_POSTGRES if _is_postgres() else _ON_SQLITE:
        op.execute(sa.text(statement.replace(":", "\\:")))


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def downgrade() -> None:
    """Go back."""
    for name in ("alert_opened_changes", "alert_changed_changes"):
        op.execute(f"DROP TRIGGER {name}{' ON alerts' if _is_postgres() else ''}")
        if _is_postgres():
            op.execute(f"DROP FUNCTION {name}")
    op.drop_table("alert_changes")
    op.drop_table("alert_followers")
