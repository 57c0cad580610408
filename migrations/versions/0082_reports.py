"""Store why users were paged, handoff notes, and post-incident documents."""

import sqlalchemy as sa
from alembic import op

revision = "0082"
down_revision = "0081"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade the schema."""
    for name in ("project_id", "policy_id", "route_id"):
        op.add_column("escalation_pages", sa.Column(name, BIG, nullable=True))
    op.create_table(
        "on_call_handover_notes",
        sa.Column("id", BIG, nullable=False),
        sa.Column("schedule_id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["schedule_id"],
            ["on_call_schedules.id"],
            name="fk_on_call_handover_notes_schedule_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name="fk_on_call_handover_notes_user_id",
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_on_call_handover_notes"),
    )
    op.create_index(
        "ix_on_call_handover_notes_schedule_id_id", "on_call_handover_notes", ["schedule_id", "id"]
    )
    op.create_index("ix_on_call_handover_notes_user_id", "on_call_handover_notes", ["user_id"])
    op.create_table(
        "incident_documents",
        sa.Column("incident_id", BIG, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("user_id", BIG, nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_id"],
            ["incidents.id"],
            name="fk_incident_documents_incident_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_incident_documents_user_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("incident_id", name="pk_incident_documents"),
    )
    op.create_index("ix_incident_documents_user_id", "incident_documents", ["user_id"])


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_table("incident_documents")
    op.drop_table("on_call_handover_notes")
    for name in ("route_id", "policy_id", "project_id"):
        op.drop_column("escalation_pages", name)
