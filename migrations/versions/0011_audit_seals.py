"""Put audit events under seals, so that it shows when somebody changes or removes one."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "audit_keys",
        sa.Column("id", ID, nullable=False),
        sa.Column("ciphertext", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_keys"),
    )
    op.create_table(
        "audit_seals",
        sa.Column("id", ID, nullable=False),
        sa.Column("sealed_at", TIME, nullable=False),
        sa.Column("newest_at", TIME, nullable=False),
        sa.Column("event_count", sa.Integer, nullable=False),
        sa.Column("events_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("mac", sa.LargeBinary(32), nullable=False),
        sa.Column("pruned_mac", sa.LargeBinary(32)),
        sa.PrimaryKeyConstraint("id", name="pk_audit_seals"),
    )
    op.create_index("ix_audit_seals_newest_at", "audit_seals", ["newest_at"])
    op.add_column("audit_events", sa.Column("seal_id", ID))
    op.add_column("audit_events", sa.Column("digest", sa.LargeBinary(32)))
    op.add_column("audit_events", sa.Column("erased_digest", sa.LargeBinary(32)))
    op.create_index("ix_audit_events_seal_id", "audit_events", ["seal_id"])


def downgrade() -> None:
    """Go back."""
    op.drop_index("ix_audit_events_seal_id", "audit_events")
    for column in ("erased_digest", "digest", "seal_id"):
        op.drop_column("audit_events", column)
    op.drop_table("audit_seals")
    op.drop_table("audit_keys")
