"""Let lists of users begin with those that they have: a kind and a state, by id.

A planner that has not counted the table yet would read all of it for a page of people.
"""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    op.create_index("ix_users_kind_state_id", "users", ["kind", "state", "id"])


def downgrade() -> None:
    """Go back."""
    op.drop_index("ix_users_kind_state_id", "users")
