"""Add what the container registry says, keys for its tokens, and removals that the worker does."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "registry_keys",
        sa.Column("id", BIG, nullable=False),
        sa.Column("kid", sa.String(length=64), nullable=False),
        sa.Column("certificate", sa.Text(), nullable=False),
        sa.Column("private_ciphertext", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("signs_from", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_registry_keys"),
        sa.UniqueConstraint("kid", name="uq_registry_keys_kid"),
    )
    op.create_table(
        "registry_repositories",
        sa.Column("id", BIG, nullable=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("pushed_at", TIME, nullable=False),
        sa.Column("removed_at", TIME),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name="fk_registry_repositories_project_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_registry_repositories"),
        sa.UniqueConstraint("name", name="uq_registry_repositories_name"),
    )
    op.create_index(
        "ix_registry_repositories_project_id_id", "registry_repositories", ["project_id", "id"]
    )
    op.create_table(
        "registry_manifests",
        sa.Column("id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("digest", sa.String(length=255), nullable=False),
        sa.Column("media_type", sa.String(length=255)),
        sa.Column("total_size", sa.BigInteger()),
        sa.Column("config_digest", sa.String(length=255)),
        sa.Column("deleted_at", TIME),
        _of_repository("registry_manifests"),
        sa.PrimaryKeyConstraint("id", name="pk_registry_manifests"),
        sa.UniqueConstraint(
            "repository_id", "digest", name="uq_registry_manifests_repository_id_digest"
        ),
    )
    op.create_index("ix_registry_manifests_deleted_at", "registry_manifests", ["deleted_at"])
    op.create_table(
        "registry_tags",
        sa.Column("id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("digest", sa.String(length=255)),
        sa.Column("pushed_at", TIME),
        sa.Column("removed_at", TIME),
        _of_repository("registry_tags"),
        sa.PrimaryKeyConstraint("id", name="pk_registry_tags"),
        sa.UniqueConstraint("repository_id", "name", name="uq_registry_tags_repository_id_name"),
    )
    op.create_index("ix_registry_tags_removed_at", "registry_tags", ["removed_at"])
    op.create_table(
        "registry_removals",
        sa.Column("id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("rule", sa.JSON()),
        sa.Column("requested_at", TIME, nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failure", sa.String(length=255)),
        _of_repository("registry_removals"),
        sa.PrimaryKeyConstraint("id", name="pk_registry_removals"),
    )
    op.create_index("ix_registry_removals_due_at", "registry_removals", ["due_at"])
    op.create_index("ix_registry_removals_repository_id", "registry_removals", ["repository_id"])


def _of_repository(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["repository_id"],
        ["registry_repositories.id"],
        name=f"fk_{table}_repository_id",
        ondelete="CASCADE",
    )


def downgrade() -> None:
    """Go back."""
    tables = ("removals", "tags", "manifests", "repositories", "keys")
    for table in tables:
        op.drop_table(f"registry_{table}")
