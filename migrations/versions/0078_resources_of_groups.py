"""Let groups own schedules, policies, silences and other resources of projects."""

from collections.abc import Callable

from alembic import op

from migrations.sqlite_tables import rebuild_tables

revision = "0078"
down_revision = "0077"
branch_labels = None
depends_on = None

_TABLES = (
    "on_call_schedules",
    "escalation_policies",
    "alert_routes",
    "silences",
    "maintenance_windows",
    "contacts",
)
_OF_PEOPLE = {"contacts"}
_ONE = "(group_id IS NULL) <> (project_id IS NULL)"
_ONE_OF_THREE = (
    "(CASE WHEN user_id IS NULL THEN 0 ELSE 1 END)"
    " + (CASE WHEN project_id IS NULL THEN 0 ELSE 1 END)"
    " + (CASE WHEN group_id IS NULL THEN 0 ELSE 1 END) = 1"
)


def _is_of_one(table: str) -> str:
    return _ONE_OF_THREE if table in _OF_PEOPLE else _ONE


def upgrade() -> None:
    """Upgrade the schema."""
    if op.get_bind().dialect.name != "postgresql":
        rebuild_tables({table: _with_groups(table) for table in _TABLES})
        return
    for table in _TABLES:
        op.execute(
            f"ALTER TABLE {table} ADD COLUMN group_id BIGINT"
            f" CONSTRAINT fk_{table}_group_id REFERENCES groups (id) ON DELETE CASCADE"
        )
        op.execute(f"ALTER TABLE {table} ALTER COLUMN project_id DROP NOT NULL")
        op.execute(_without_former_check(table))
        op.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT ck_{table}_one_holder CHECK ({_is_of_one(table)})"
        )


def _without_former_check(table: str) -> str:
    return (
        f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS ck_{table}_ck_{table}_one_owner,"
        f" DROP CONSTRAINT IF EXISTS ck_{table}_one_owner"
    )


def _with_groups(table: str) -> Callable[[str], str]:
    def definition(before: str) -> str:
        if "group_id" in before:
            return before
        lines = [line for line in before.rpartition(")")[0].splitlines() if "one_owner" not in line]
        column = next(
            number for number, line in enumerate(lines) if line.strip().startswith("project_id")
        )
        lines[column] = "\tproject_id INTEGER, \n\tgroup_id INTEGER, "
        reference = "FOREIGN KEY(group_id) REFERENCES groups (id) ON DELETE CASCADE"
        return "\n".join(
            [
                *lines[:-1],
                f"{lines[-1].rstrip(', ')},",
                f"\tCONSTRAINT ck_{table}_one_holder CHECK ({_is_of_one(table)}),",
                f"\tCONSTRAINT fk_{table}_group_id {reference}",
                ")",
            ]
        )

    return definition


def downgrade() -> None:
    """Downgrade the schema. The resources of groups are deleted."""
    for table in _TABLES:
        op.execute(f"DELETE FROM {table} WHERE group_id IS NOT NULL")  # noqa: S608 - our own names
    if op.get_bind().dialect.name != "postgresql":
        rebuild_tables({table: _without_groups(table) for table in _TABLES})
        return
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} DROP COLUMN group_id")
        if table in _OF_PEOPLE:
            op.execute(
                f"ALTER TABLE {table} ADD CONSTRAINT ck_{table}_one_owner"
                " CHECK ((user_id IS NULL) <> (project_id IS NULL))"
            )
        else:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN project_id SET NOT NULL")


def _without_groups(table: str) -> Callable[[str], str]:
    def definition(before: str) -> str:
        kept = [line for line in before.splitlines() if "group_id" not in line]
        lines = [line for line in kept if line.strip() != ")"]
        lines[-1] = lines[-1].rstrip(", ")
        if table not in _OF_PEOPLE:
            lines = [
                line.replace("project_id INTEGER,", "project_id INTEGER NOT NULL,")
                for line in lines
            ]
        return "\n".join([*lines, ")"])

    return definition
