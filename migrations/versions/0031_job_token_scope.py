"""Keep what limits the tokens of CI jobs of a project."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

_COLUMNS = {
    "limits_job_token_to_others": sa.false(),
    "limits_job_tokens_of_others": sa.true(),
}


def upgrade() -> None:
    """Go forward."""
    for name, usual in _COLUMNS.items():
        op.add_column(
            "projects", sa.Column(name, sa.Boolean(), nullable=False, server_default=usual)
        )


def downgrade() -> None:
    """Go back."""
    for name in _COLUMNS:
        op.drop_column("projects", name)
