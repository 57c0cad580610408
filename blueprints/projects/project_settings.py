"""/<project>/-/settings/{path,transfer,delete}: where a project is, and its end."""

from flask.typing import ResponseReturnValue

from blueprints.projects.namespace_pages import PlacePages
from domain.access.roles import Role
from domain.projects.views import ProjectView
from web.access.marks import project_member
from web.http.endpoints import PageBlueprint

project_places = PageBlueprint(
    "project_places", __name__, url_prefix="/<names:project_path>/-/settings"
)


@project_places.route("/path", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def rename(project: ProjectView) -> ResponseReturnValue:
    """Change the path."""
    return PlacePages(project).rename()


@project_places.post("/path/<int:former_id>/release")
@project_member(at_least=Role.OWNER)
def release(project: ProjectView, former_id: int) -> ResponseReturnValue:
    """Release a former path."""
    return PlacePages(project).release(former_id)


@project_places.route("/transfer", methods=["GET", "POST"])
@project_member(at_least=Role.OWNER)
def transfer(project: ProjectView) -> ResponseReturnValue:
    """Move the project into another group."""
    return PlacePages(project).transfer()


@project_places.route("/delete", methods=["GET", "POST"])
@project_member(at_least=Role.OWNER, in_archived=True)
def delete(project: ProjectView) -> ResponseReturnValue:
    """Delete the project."""
    return PlacePages(project).delete()
