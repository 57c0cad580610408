"""Keep who is paged for which alerts, and how far that has come."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "escalation_policies",
        sa.Column("id", _BIG_ID, nullable=False),
        sa.Column("project_id", _BIG_ID, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("steps", sa.JSON(), nullable=False),
        sa.Column("repeats", sa.SmallInteger(), nullable=False),
        sa.Column("repeat_pause", sa.Integer(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.Column("name_key", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name="fk_escalation_policies_project_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_escalation_policies"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_escalation_policies_project_id_name_key",
        "escalation_policies",
        ["project_id", "name_key"],
        unique=True,
    )
    op.create_table(
        "alert_routes",
        sa.Column("id", _BIG_ID, nullable=False),
        sa.Column("project_id", _BIG_ID, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("conditions", sa.JSON(), nullable=False),
        sa.Column("policy_id", _BIG_ID, nullable=True),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["policy_id"],
            ["escalation_policies.id"],
            name="fk_alert_routes_policy_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_alert_routes_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_alert_routes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_routes_policy_id", "alert_routes", ["policy_id"], unique=False)
    op.create_index(
        "ix_alert_routes_project_id_position",
        "alert_routes",
        ["project_id", "position"],
        unique=False,
    )
    op.create_table(
        "escalation_pages",
        sa.Column("id", _BIG_ID, nullable=False),
        sa.Column("alert_id", _BIG_ID, nullable=False),
        sa.Column("user_id", _BIG_ID, nullable=True),
        sa.Column("channel_id", _BIG_ID, nullable=True),
        sa.Column("round", sa.SmallInteger(), nullable=False),
        sa.Column("step", sa.SmallInteger(), nullable=False),
        sa.Column("paged_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["alert_id"], ["alerts.id"], name="fk_escalation_pages_alert_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_escalation_pages_user_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_escalation_pages"),
    )
    op.create_index("ix_escalation_pages_alert_id", "escalation_pages", ["alert_id"], unique=False)
    op.create_index("ix_escalation_pages_paged_at", "escalation_pages", ["paged_at"], unique=False)
    op.create_index("ix_escalation_pages_user_id", "escalation_pages", ["user_id"], unique=False)
    op.create_table(
        "escalations",
        sa.Column("id", _BIG_ID, nullable=False),
        sa.Column("alert_id", _BIG_ID, nullable=False),
        sa.Column("project_id", _BIG_ID, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("policy_id", _BIG_ID, nullable=True),
        sa.Column("route_id", _BIG_ID, nullable=True),
        sa.Column("round", sa.SmallInteger(), nullable=False),
        sa.Column("step", sa.SmallInteger(), nullable=False),
        sa.Column("round_began_at", _TIME, nullable=False),
        sa.Column("next_at", _TIME, nullable=True),
        sa.Column("has_reached", sa.Boolean(), nullable=False),
        sa.Column("held_since", _TIME, nullable=True),
        sa.Column("held_by", sa.Text(), nullable=True),
        sa.Column("held_until", _TIME, nullable=True),
        sa.Column("started_at", _TIME, nullable=False),
        sa.Column("ended_at", _TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["alert_id"], ["alerts.id"], name="fk_escalations_alert_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_escalations"),
        sa.UniqueConstraint("alert_id", name="uq_escalations_alert_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_escalations_ended_at",
        "escalations",
        ["ended_at"],
        unique=False,
        **_where("ended_at IS NOT NULL"),
    )
    op.create_index(
        "ix_escalations_next_at",
        "escalations",
        ["next_at"],
        unique=False,
        **_where("next_at IS NOT NULL"),
    )
    op.create_index(
        "ix_escalations_policy_id",
        "escalations",
        ["policy_id"],
        unique=False,
        **_where("next_at IS NOT NULL"),
    )


def _where(condition: str) -> dict[str, Any]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def downgrade() -> None:
    """Go back."""
    for name in ("escalations", "escalation_pages", "alert_routes", "escalation_policies"):
        op.drop_table(name)
