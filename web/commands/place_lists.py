"""Commands that list and show groups and projects."""

from typing import Any

import click

from domain.clock import written
from domain.database.paging import ListPart
from domain.projects.access import follow_to_project, get_group
from domain.projects.former_paths import list_former_paths
from domain.projects.listing import GroupFilter, ProjectFilter, list_groups, list_projects
from domain.projects.members import OPERATOR, get_namespace
from domain.projects.views import GroupView, ProjectView
from web.commands.transaction import one_transaction
from web.extensions import db

#: The largest part of a list, and of former paths.
_MOST, _MOST_FORMER = 1_000, 100
_SEARCH = click.option("--search", default="", help="Search names and paths.")
_PAGE = click.option(
    "--page",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of the page; a page has 1,000 entries.",
)


def _part(page: int, order_by: str) -> ListPart:
    return ListPart(size=_MOST, offset=(page - 1) * _MOST, order_by=order_by)


@click.command("list")
@_SEARCH
@_PAGE
@one_transaction
def list_groups_command(*, search: str, page: int) -> dict[str, Any]:
    """List groups by path."""
    part, wanted = _part(page, "path"), GroupFilter(search=search)
    found = list_groups(wanted, part, OPERATOR, session=db.session())
    return {"groups": [_group(each.group) for each in found.items], "total": found.total}


@click.command("show")
@click.argument("path")
@one_transaction
def show_group_command(*, path: str) -> dict[str, Any]:
    """Show the group PATH."""
    session = db.session()
    place = get_namespace(path, session=session)
    group = get_group(place.path, OPERATOR, session=session)
    former = list_former_paths(place, most=_MOST_FORMER, session=session)
    return {
        **_group(group),
        "description": group.description,
        "former_paths": [each.path for each in former],
    }


@click.command("list")
@click.option("--group", help="Only those in this group and below it.")
@_SEARCH
@_PAGE
@one_transaction
def list_projects_command(*, group: str | None, search: str, page: int) -> dict[str, Any]:
    """List projects by path."""
    session = db.session()
    inside = get_namespace(group, session=session).group_id if group else None
    wanted = ProjectFilter(group_id=inside, with_subgroups=True, search=search)
    found = list_projects(wanted, _part(page, "path"), OPERATOR, session=session)
    return {"projects": [_project(each.project) for each in found.items], "total": found.total}


@click.command("show")
@click.argument("path")
@one_transaction
def show_project_command(*, path: str) -> dict[str, Any]:
    """Show the project PATH."""
    session = db.session()
    project = follow_to_project(path, OPERATOR, session=session)
    former = list_former_paths(project.namespace, most=_MOST_FORMER, session=session)
    return {
        **_project(project),
        "description": project.description,
        "former_paths": [each.path for each in former],
    }


def _group(group: GroupView) -> dict[str, Any]:
    return {
        "id": group.id,
        "path": group.path,
        "name": group.name,
        "created_at": written(group.created_at),
    }


def _project(project: ProjectView) -> dict[str, Any]:
    return {
        "id": project.id,
        "path": project.path,
        "name": project.name,
        "visibility": project.visibility,
        "archived": project.is_archived,
        "created_at": written(project.created_at),
    }


#: Of `gatebell groups` and `gatebell projects`.
GROUP_LISTS = (list_groups_command, show_group_command)
PROJECT_LISTS = (list_projects_command, show_project_command)
