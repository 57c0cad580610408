"""/<project>/-/settings/{path,transfer,delete}: where a project is, and its end."""

from flask.typing import ResponseReturnValue

from blueprints.projects.namespace_pages import NamespacePages
from domain.projects.views import ProjectView
from web.access.marks import permitted
from web.http.endpoints import PageBlueprint

project_settings = PageBlueprint(
    "project_settings", __name__, url_prefix="/<names:project_path>/-/settings"
)


@project_settings.route("/path", methods=["GET", "POST"])
@permitted("projects.change")
def rename(project: ProjectView) -> ResponseReturnValue:
    """Change the path."""
    return NamespacePages(project).rename()


@project_settings.post("/path/<int:former_id>/release")
@permitted("former_paths.release")
def release(project: ProjectView, former_id: int) -> ResponseReturnValue:
    """Release a former path."""
    return NamespacePages(project).release(former_id)


@project_settings.route("/transfer", methods=["GET", "POST"])
@permitted("projects.transfer")
def transfer(project: ProjectView) -> ResponseReturnValue:
    """Move the project into another group."""
    return NamespacePages(project).transfer()


@project_settings.route("/delete", methods=["GET", "POST"])
@permitted("projects.delete")
def delete(project: ProjectView) -> ResponseReturnValue:
    """Delete the project."""
    return NamespacePages(project).delete()
