"""Let an override replace one user instead of all users."""

from alembic import op

revision = "0087"
down_revision = "0086"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    kind = "BIGINT" if op.get_bind().dialect.name == "postgresql" else "INTEGER"
    # A single statement works on SQLite as well.
    op.execute(
        f"ALTER TABLE on_call_overrides ADD COLUMN instead_of_id {kind}"
        " CONSTRAINT fk_on_call_overrides_instead_of_id REFERENCES users (id)"
    )


def downgrade() -> None:
    """Downgrade the schema."""
    op.drop_column("on_call_overrides", "instead_of_id")
