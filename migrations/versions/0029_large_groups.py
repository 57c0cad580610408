"""Let lists of groups, projects and members be read from indexes, also without statistics.

A planner that has not counted a table takes a condition IS NULL for rare: it read the whole index
of the ends of memberships for those without an end.
"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_COLUMNS = {
    "ix_projects_group_id_path_key": ("projects", ["group_id", "path_key", "id"]),
    "ix_projects_group_id_visibility": ("projects", ["group_id", "visibility"]),
    "ix_members_group_id_user_id": ("members", ["group_id", "user_id"]),
    "ix_members_project_id_user_id": ("members", ["project_id", "user_id"]),
}
#: Prefixes of those.
_FORMER = {
    "ix_projects_group_id": ("projects", "group_id"),
    "ix_members_group_id": ("members", "group_id"),
    "ix_members_project_id": ("members", "project_id"),
}


def upgrade() -> None:
    """Go forward."""
    for name, (table, columns) in _COLUMNS.items():
        op.create_index(name, table, columns)
    for name, (table, _) in _FORMER.items():
        op.drop_index(name, table)
    ends = sa.text("expires_at IS NOT NULL")
    op.drop_index("ix_members_expires_at", "members")
    op.create_index(
        "ix_members_expires_at",
        "members",
        ["expires_at"],
        postgresql_where=ends,
        sqlite_where=ends,
    )


def downgrade() -> None:
    """Go back."""
    op.drop_index("ix_members_expires_at", "members")
    op.create_index("ix_members_expires_at", "members", ["expires_at"])
    for name, (table, column) in _FORMER.items():
        op.create_index(name, table, [column])
    for name, (table, _) in _COLUMNS.items():
        op.drop_index(name, table)
