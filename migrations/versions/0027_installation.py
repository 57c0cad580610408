"""Know since when this installation exists: what has no date of its own was announced then.

An older installation exists since its first account or the first use of its secret key.
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_FILL = """
INSERT INTO installation (id, installed_at)
SELECT 1, COALESCE(MIN(known.moment), CURRENT_TIMESTAMP)
FROM (
    SELECT created_at AS moment FROM users
    UNION ALL SELECT first_used_at FROM secret_key_uses
) AS known
"""


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "installation",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("installed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_installation"),
    )
    op.execute(_FILL)


def downgrade() -> None:
    """Go back."""
    op.drop_table("installation")
