"""Pages for the files and commits of a branch."""

from flask import render_template
from flask.typing import ResponseReturnValue

from blueprints.git.browsing import (
    clone_url,
    read_commits,
    read_file,
    read_folder,
    tail_of_request,
)
from domain.core.errors import NotFoundError, QueryError
from domain.git.access import may_push
from domain.projects.views import ProjectView
from web.access.git_marks import reads_files
from web.http.endpoints import PageBlueprint
from web.pages.list_query import LinkedPage, list_query

files = PageBlueprint("files", __name__)
_COMMITS = 30
_LAST_PAGE = 333


@files.get("/<names:project_path>/-/tree")
@reads_files
def index(project: ProjectView) -> ResponseReturnValue:
    """Show the files of the default branch."""
    return _folder(project, b"")


@files.get("/<names:project_path>/-/tree/<path:tail>")
@reads_files
def folder(project: ProjectView, tail: str) -> ResponseReturnValue:
    """Show a folder of a branch."""
    del tail  # decoded, and so not necessarily what was sent
    return _folder(project, tail_of_request())


def _folder(project: ProjectView, tail: bytes) -> ResponseReturnValue:
    return render_template(
        "files/folder.html",
        project=project,
        shown=read_folder(project, tail),
        clone_url=clone_url(project),
        may_push=may_push(project),
    )


@files.get("/<names:project_path>/-/blob/<path:tail>")
@reads_files
def file(project: ProjectView, tail: str) -> ResponseReturnValue:
    """Show a file of a branch if it is a text file."""
    del tail
    return render_template(
        "files/file.html",
        project=project,
        shown=read_file(project, tail_of_request()),
        clone_url=clone_url(project),
    )


@files.get("/<names:project_path>/-/commits/<path:tail>")
@reads_files
def commits(project: ProjectView, tail: str) -> ResponseReturnValue:
    """Show the commits of a branch, newest first."""
    del tail
    number = _page_number()
    shown = read_commits(project, tail_of_request(), skip=(number - 1) * _COMMITS, count=_COMMITS)
    if not shown.page.commits and number > 1:
        raise NotFoundError("There are no older commits.")
    url = shown.links.commits()
    links = LinkedPage(
        items=shown.page.commits,
        previous_url=f"{url}?page={number - 1}" if number > 1 else None,
        next_url=f"{url}?page={number + 1}" if shown.page.has_older else None,
    )
    return render_template("files/commits.html", project=project, shown=shown, links=links)


def _page_number() -> int:
    given = list_query("page").get("page", "1")
    number = int(given) if given.isascii() and given.isdigit() and len(given) < 4 else 0  # noqa: PLR2004
    if not 1 <= number <= _LAST_PAGE:
        raise QueryError(f"page must be a number from 1 to {_LAST_PAGE}.", field="page")
    return number
