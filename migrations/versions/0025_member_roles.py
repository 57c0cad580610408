"""Let custom roles of the instance add permissions to those of a role."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
#: Other tables need not be read to make this one anew.
_ALONE = {"resolve_fks": False}


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "member_roles",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("base_role", sa.SmallInteger, nullable=False),
        sa.Column("abilities", sa.JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("name_key", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_member_roles"),
        sa.UniqueConstraint("name_key", name="uq_member_roles_name_key"),
    )
    with op.batch_alter_table("members", reflect_kwargs=_ALONE) as members:
        members.add_column(sa.Column("member_role_id", ID))
        members.create_foreign_key(
            "fk_members_member_role_id", "member_roles", ["member_role_id"], ["id"]
        )
    op.create_index("ix_members_member_role_id", "members", ["member_role_id"])


def downgrade() -> None:
    """Go back."""
    op.drop_index("ix_members_member_role_id", table_name="members")
    with op.batch_alter_table("members", reflect_kwargs=_ALONE) as members:
        members.drop_constraint("fk_members_member_role_id", type_="foreignkey")
        members.drop_column("member_role_id")
    op.drop_table("member_roles")
