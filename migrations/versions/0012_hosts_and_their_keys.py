"""Know which hosts work here, with which secret keys, and which code the schema still serves.

`keyed_at` says when a keyed hash was last made: what is long-lived is hashed anew with the newest
key when it is presented.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_LONG_LIVED = ("application_secrets", "personal_access_tokens", "applications")


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "hosts",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("key_fingerprints", sa.Text(), nullable=False),
        sa.Column("revision", sa.String(length=32), nullable=False),
        sa.Column("clock_lead_ms", sa.Integer(), nullable=True),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_hosts"),
    )
    op.create_table(
        "secret_key_uses",
        sa.Column("fingerprint", sa.String(length=32), nullable=False),
        sa.Column("first_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_secret_key_uses"),
    )
    support = op.create_table(
        "schema_support",
        sa.Column("oldest_revision", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("oldest_revision", name="pk_schema_support"),
    )
    op.bulk_insert(support, [{"oldest_revision": "0008"}])
    op.create_table(
        "job_turns",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_job_turns"),
    )
    for table in _LONG_LIVED:
        op.add_column(table, sa.Column("keyed_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Go back."""
    for table in _LONG_LIVED:
        op.drop_column(table, "keyed_at")
    for table in ("job_turns", "schema_support", "secret_key_uses", "hosts"):
        op.drop_table(table)
