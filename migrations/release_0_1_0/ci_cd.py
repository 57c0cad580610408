"""Tables of releases, deployments and the container registry."""

import sqlalchemy as sa
from alembic import op

from migrations.release_0_1_0.columns import ID_TYPE, TIMESTAMP_TYPE, build_foreign_key


def create_tables() -> None:
    """Create the tables and their indexes."""
    op.create_table(
        "environments",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_environments_project_id"),
            nullable=False,
        ),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("name_key", sa.Text()),
        sa.Column("external_url", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_environments"),
        sa.UniqueConstraint("project_id", "name", name="uq_environments_project_id_name"),
    )
    op.create_table(
        "commit_statuses",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_commit_statuses_project_id"),
            nullable=False,
        ),
        sa.Column("sha", sa.String(64), nullable=False),
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("target_url", sa.Text()),
        sa.Column("description", sa.Text()),
        sa.Column("coverage", sa.Double()),
        sa.Column("allow_failure", sa.Boolean(), nullable=False),
        sa.Column("pipeline_id", ID_TYPE),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_commit_statuses_user_id", ondelete="SET NULL"),
        ),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("started_at", TIMESTAMP_TYPE),
        sa.Column("finished_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_commit_statuses"),
    )
    op.create_index(
        "ix_commit_statuses_project_id_sha", "commit_statuses", ["project_id", "sha", "id"]
    )
    op.create_index("ix_commit_statuses_user_id", "commit_statuses", ["user_id"])
    op.create_table(
        "project_releases",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_project_releases_project_id"),
            nullable=False,
        ),
        sa.Column("tag_name", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("ref", sa.String(255)),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_project_releases_user_id", ondelete="SET NULL"),
        ),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("released_at", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_project_releases"),
        sa.UniqueConstraint(
            "project_id", "tag_name", name="uq_project_releases_project_id_tag_name"
        ),
    )
    op.create_index(
        "ix_project_releases_project_id_released_at",
        "project_releases",
        ["project_id", "released_at", "id"],
    )
    op.create_index("ix_project_releases_user_id", "project_releases", ["user_id"])
    op.create_table(
        "release_links",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "release_id",
            ID_TYPE,
            build_foreign_key("project_releases", "fk_release_links_release_id"),
            nullable=False,
        ),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("link_type", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_release_links"),
        sa.UniqueConstraint("release_id", "name", name="uq_release_links_release_id_name"),
        sa.UniqueConstraint("release_id", "url", name="uq_release_links_release_id_url"),
    )
    op.create_table(
        "deployments",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_deployments_project_id"),
            nullable=False,
        ),
        sa.Column("iid", sa.Integer(), nullable=False),
        sa.Column(
            "environment_id",
            ID_TYPE,
            build_foreign_key("environments", "fk_deployments_environment_id"),
            nullable=False,
        ),
        sa.Column("sha", sa.String(64), nullable=False),
        sa.Column("ref", sa.String(255), nullable=False),
        sa.Column("is_tag", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column(
            "user_id",
            ID_TYPE,
            build_foreign_key("users", "fk_deployments_user_id", ondelete="SET NULL"),
        ),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("updated_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("finished_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_deployments"),
        sa.UniqueConstraint("project_id", "iid", name="uq_deployments_project_id_iid"),
    )
    op.create_index("ix_deployments_environment_id_id", "deployments", ["environment_id", "id"])
    op.create_index(
        "ix_deployments_project_id_finished_at", "deployments", ["project_id", "finished_at", "id"]
    )
    op.create_index(
        "ix_deployments_project_id_updated_at", "deployments", ["project_id", "updated_at", "id"]
    )
    op.create_index("ix_deployments_user_id", "deployments", ["user_id"])
    op.create_table(
        "registry_keys",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column("kid", sa.String(64), nullable=False),
        sa.Column("certificate", sa.Text(), nullable=False),
        sa.Column("private_ciphertext", sa.Text(), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("signs_from", TIMESTAMP_TYPE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_registry_keys"),
        sa.UniqueConstraint("kid", name="uq_registry_keys_kid"),
    )
    op.create_table(
        "registry_repositories",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "project_id",
            ID_TYPE,
            build_foreign_key("projects", "fk_registry_repositories_project_id"),
            nullable=False,
        ),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("created_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("pushed_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("removed_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_registry_repositories"),
        sa.UniqueConstraint("name", name="uq_registry_repositories_name"),
    )
    op.create_index(
        "ix_registry_repositories_project_id_id", "registry_repositories", ["project_id", "id"]
    )
    op.create_table(
        "registry_manifests",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "repository_id",
            ID_TYPE,
            build_foreign_key("registry_repositories", "fk_registry_manifests_repository_id"),
            nullable=False,
        ),
        sa.Column("digest", sa.String(255), nullable=False),
        sa.Column("media_type", sa.String(255)),
        sa.Column("total_size", sa.BigInteger()),
        sa.Column("config_digest", sa.String(255)),
        sa.Column("deleted_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_registry_manifests"),
        sa.UniqueConstraint(
            "repository_id", "digest", name="uq_registry_manifests_repository_id_digest"
        ),
    )
    op.create_index("ix_registry_manifests_deleted_at", "registry_manifests", ["deleted_at"])
    op.create_table(
        "registry_tags",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "repository_id",
            ID_TYPE,
            build_foreign_key("registry_repositories", "fk_registry_tags_repository_id"),
            nullable=False,
        ),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("digest", sa.String(255)),
        sa.Column("pushed_at", TIMESTAMP_TYPE),
        sa.Column("removed_at", TIMESTAMP_TYPE),
        sa.PrimaryKeyConstraint("id", name="pk_registry_tags"),
        sa.UniqueConstraint("repository_id", "name", name="uq_registry_tags_repository_id_name"),
    )
    op.create_index("ix_registry_tags_removed_at", "registry_tags", ["removed_at"])
    op.create_table(
        "registry_removals",
        sa.Column("id", ID_TYPE, nullable=False),
        sa.Column(
            "repository_id",
            ID_TYPE,
            build_foreign_key("registry_repositories", "fk_registry_removals_repository_id"),
            nullable=False,
        ),
        sa.Column("rule", sa.JSON()),
        sa.Column("requested_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("due_at", TIMESTAMP_TYPE, nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failure", sa.String(255)),
        sa.PrimaryKeyConstraint("id", name="pk_registry_removals"),
    )
    op.create_index("ix_registry_removals_due_at", "registry_removals", ["due_at"])
    op.create_index("ix_registry_removals_repository_id", "registry_removals", ["repository_id"])
