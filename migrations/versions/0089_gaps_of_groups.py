"""Store the gaps in the policies of groups in addition to those in projects."""

from alembic import op

from migrations.sqlite_tables import rebuild_tables

revision = "0089"
down_revision = "0088"
branch_labels = None
depends_on = None

_ONE = "(group_id IS NULL) <> (project_id IS NULL)"
_OF_PROJECT = (
    "CONSTRAINT fk_known_gaps_project_id FOREIGN KEY(project_id)"
    " REFERENCES projects (id) ON DELETE CASCADE"
)
_WITH_GROUPS = f"""CREATE TABLE known_gaps (
    id INTEGER NOT NULL,
    project_id INTEGER,
    group_id INTEGER,
    gaps JSON NOT NULL,
    CONSTRAINT pk_known_gaps PRIMARY KEY (id),
    CONSTRAINT uq_known_gaps_project_id UNIQUE (project_id),
    CONSTRAINT uq_known_gaps_group_id UNIQUE (group_id),
    CONSTRAINT ck_known_gaps_one_holder CHECK ({_ONE}),
    {_OF_PROJECT},
    CONSTRAINT fk_known_gaps_group_id FOREIGN KEY(group_id)
        REFERENCES groups (id) ON DELETE CASCADE
)"""
_OF_PROJECTS = f"""CREATE TABLE known_gaps (
    project_id INTEGER NOT NULL,
    gaps JSON NOT NULL,
    CONSTRAINT pk_known_gaps PRIMARY KEY (project_id),
    {_OF_PROJECT}
)"""


def upgrade() -> None:
    """Upgrade the schema."""
    if op.get_bind().dialect.name != "postgresql":
        rebuild_tables(
            {"known_gaps": lambda before: before if "group_id" in before else _WITH_GROUPS}
        )
        return
    op.execute(
        "ALTER TABLE known_gaps DROP CONSTRAINT pk_known_gaps,"
        " ALTER COLUMN project_id DROP NOT NULL,"
        " ADD CONSTRAINT uq_known_gaps_project_id UNIQUE (project_id)"
    )
    op.execute(
        "ALTER TABLE known_gaps"
        " ADD COLUMN id BIGSERIAL CONSTRAINT pk_known_gaps PRIMARY KEY,"
        " ADD COLUMN group_id BIGINT CONSTRAINT uq_known_gaps_group_id UNIQUE"
        " CONSTRAINT fk_known_gaps_group_id REFERENCES groups (id) ON DELETE CASCADE,"
        f" ADD CONSTRAINT ck_known_gaps_one_holder CHECK ({_ONE})"
    )


def downgrade() -> None:
    """Downgrade the schema. The gaps of groups are deleted."""
    op.execute("DELETE FROM known_gaps WHERE group_id IS NOT NULL")
    if op.get_bind().dialect.name != "postgresql":
        rebuild_tables({"known_gaps": lambda _before: _OF_PROJECTS})
        return
    op.execute("ALTER TABLE known_gaps DROP COLUMN id, DROP COLUMN group_id")
    op.execute(
        "ALTER TABLE known_gaps DROP CONSTRAINT uq_known_gaps_project_id,"
        " ADD CONSTRAINT pk_known_gaps PRIMARY KEY (project_id)"
    )
