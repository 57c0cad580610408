"""/<project>/-/settings/{path,transfer,delete}: where a project is, and its end."""

from blueprints.projects.namespace_pages import add_namespace_pages
from web.http.endpoints import PageBlueprint

project_settings = PageBlueprint(
    "project_settings", __name__, url_prefix="/<names:project_path>/-/settings"
)
add_namespace_pages(project_settings, "projects")
