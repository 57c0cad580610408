"""Keep what external CI reports: deployments, statuses of commits, releases."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "commit_statuses",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("sha", sa.String(length=64), nullable=False),
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("target_url", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("coverage", sa.Double(), nullable=True),
        sa.Column("allow_failure", sa.Boolean(), nullable=False),
        sa.Column("pipeline_id", ID, nullable=True),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_commit_statuses_project_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_commit_statuses_user_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_commit_statuses")),
    )
    op.create_index(op.f("ix_commit_statuses_user_id"), "commit_statuses", ["user_id"])
    op.create_index(
        "ix_commit_statuses_project_id_sha", "commit_statuses", ["project_id", "sha", "id"]
    )
    op.create_table(
        "project_releases",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("tag_name", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("ref", sa.String(length=255), nullable=True),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("released_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_project_releases_project_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_project_releases_user_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project_releases")),
        sa.UniqueConstraint(
            "project_id", "tag_name", name=op.f("uq_project_releases_project_id_tag_name")
        ),
    )
    op.create_index(
        "ix_project_releases_project_id_released_at",
        "project_releases",
        ["project_id", "released_at", "id"],
    )
    op.create_index(op.f("ix_project_releases_user_id"), "project_releases", ["user_id"])
    op.create_table(
        "deployments",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("iid", sa.Integer(), nullable=False),
        sa.Column("environment_id", ID, nullable=False),
        sa.Column("sha", sa.String(length=64), nullable=False),
        sa.Column("ref", sa.String(length=255), nullable=False),
        sa.Column("is_tag", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("finished_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["environment_id"],
            ["environments.id"],
            name=op.f("fk_deployments_environment_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_deployments_project_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_deployments_user_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deployments")),
        sa.UniqueConstraint("project_id", "iid", name=op.f("uq_deployments_project_id_iid")),
    )
    op.create_index(op.f("ix_deployments_environment_id"), "deployments", ["environment_id"])
    op.create_index(
        "ix_deployments_project_id_finished_at", "deployments", ["project_id", "finished_at", "id"]
    )
    op.create_index(
        "ix_deployments_project_id_updated_at", "deployments", ["project_id", "updated_at", "id"]
    )
    op.create_index(op.f("ix_deployments_user_id"), "deployments", ["user_id"])
    op.create_table(
        "release_links",
        sa.Column("id", ID, nullable=False),
        sa.Column("release_id", ID, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("link_type", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(
            ["release_id"],
            ["project_releases.id"],
            name=op.f("fk_release_links_release_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_release_links")),
        sa.UniqueConstraint("release_id", "name", name=op.f("uq_release_links_release_id_name")),
        sa.UniqueConstraint("release_id", "url", name=op.f("uq_release_links_release_id_url")),
    )
    op.add_column("environments", sa.Column("external_url", sa.Text(), nullable=True))


def downgrade() -> None:
    """Go back."""
    op.drop_column("environments", "external_url")
    for table in ("release_links", "deployments", "project_releases", "commit_statuses"):
        op.drop_table(table)
