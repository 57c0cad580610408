"""Tie tokens that an application made to the access that it made them with."""

import warnings

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Go forward."""
    # SQLite copies the table, and reads what it points to; of that table's indexes we want nothing.
    warnings.filterwarnings("ignore", message="Skipped unsupported reflection")
    with op.batch_alter_table("personal_access_tokens") as table:
        table.add_column(sa.Column("authorization_id", BIG))
        table.add_column(sa.Column("key_thumbprint", sa.String(length=64)))
        # Without it a number that SQLite hands out again would bring a dead token back to life.
        table.create_foreign_key(
            "fk_personal_access_tokens_authorization_id",
            "authorizations",
            ["authorization_id"],
            ["id"],
            ondelete="CASCADE",
        )
        table.create_index("ix_personal_access_tokens_authorization_id", ["authorization_id"])


def downgrade() -> None:
    """Go back."""
    with op.batch_alter_table("personal_access_tokens") as table:
        table.drop_index("ix_personal_access_tokens_authorization_id")
        table.drop_constraint("fk_personal_access_tokens_authorization_id", type_="foreignkey")
        table.drop_column("key_thumbprint")
        table.drop_column("authorization_id")
