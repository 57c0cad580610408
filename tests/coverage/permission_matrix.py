"""Writes docs/permissions.md: the roles that each operation of the API needs."""

import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from tempfile import TemporaryDirectory

from flask import Flask

from app import create_app
from domain.access.permissions import PERMISSIONS, Permission, PermissionTarget
from domain.access.roles import Role
from web.api.openapi.views import get_tag, list_described_views
from web.settings.environment import parse_settings

_INTRODUCTION = """\
# Permissions of roles

A member of a project or group has one of six roles, and each role includes the roles before it. A
member of a group has at least this role in all subgroups and projects of the group. The roles apply
to pages and to the API. A token also needs the
[scope](guides/scopes-and-claims.md) of the operation.

A [custom role](member-roles.md) adds the permission in the last column to a lower role.
Administrators can do everything that Owners can; their tokens need the `admin_mode` scope for this.

## Repositories and images

| action | Guest | Planner | Reporter | Developer | Maintainer | Owner | custom permission |
|---|---|---|---|---|---|---|---|
| Clone and fetch a private project | | | ● | ● | ● | ● | `read_code` |
| Push to a project | | | | ● | ● | ● | |
| Pull images of a private project | | | ● | ● | ● | ● | |
| Push images | | | | ● | ● | ● | |
| Delete images | | | | | ● | ● | |

Everyone can clone and fetch public projects. Every user can clone and fetch internal projects.
"""
_ORIGIN = "\nGenerated from `domain/access/permissions.py` by `make docs`.\n"


def document(app: Flask) -> str:
    """Return the text of docs/permissions.md."""
    return "".join([_INTRODUCTION, *_tables(_summaries(app)), _ORIGIN])


def _summaries(app: Flask) -> Mapping[str, str]:
    """Return the summaries of operations that need a role, by the names of their permissions."""
    found: dict[str, str] = {}
    for view in list_described_views(app):
        name = ".".join(view.name.split(".")[:2])
        permission = PERMISSIONS.get(name)
        if (
            permission
            and permission.target is not PermissionTarget.INSTANCE
            and _has_role(permission)
        ):
            found.setdefault(name, view.summary)
    return found


def _has_role(permission: Permission) -> bool:
    return permission.least is not None or permission.in_private is not None


def _tables(summaries: Mapping[str, str]) -> Iterator[str]:
    for subject, names in groupby(sorted(summaries), key=lambda name: name.partition(".")[0]):
        yield f"\n## {get_tag(subject)}\n\n"
        yield f"| action | {' | '.join(role.label for role in Role)} | custom permission |\n"
        yield f"|---|{'---|' * len(Role)}---|\n"
        for name in names:
            permission = PERMISSIONS[name]
            cells = " | ".join(_cell(permission, role) for role in Role)
            ability = f"`{permission.ability.value}`" if permission.ability else ""
            yield f"| {summaries[name]} | {cells} | {ability} |\n"


def _cell(permission: Permission, role: Role) -> str:
    """Return the mark of a role: everywhere, only in projects, or nowhere."""
    if permission.least is None:
        is_open = permission.in_private is None or role >= permission.in_private
        return "●" if is_open else "public projects"
    in_project = role >= permission.least
    in_group = role >= (permission.in_group or permission.least)
    if permission.target is PermissionTarget.NAMESPACE and in_project != in_group:
        return "in projects" if in_project else "in groups"
    return "●" if in_project else ""


def main() -> None:
    """Print the text, for an application with the default settings."""
    with TemporaryDirectory() as folder:
        app = create_app(parse_settings({"INSTANCE_PATH": folder, "SECRET_KEY": "0" * 64}))
        sys.stdout.write(document(app))


if __name__ == "__main__":
    main()
