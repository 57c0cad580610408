"""/<project>/-/container_registry: repositories and tags, signing in, and a ready configuration."""

from flask import render_template
from flask.typing import ResponseReturnValue

from domain.accounts.roles import Role
from domain.database.paging import Page
from domain.projects.views import ProjectView
from domain.registry import repositories as domain
from domain.registry.configuration import EXAMPLE_HOST
from domain.registry.names import root_name
from web.access.marks import project_member
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.links import page_links
from web.pages.list_query import CURSORS, asked_slice, list_query
from web.registry.configuration import shown_configuration
from web.services import registry_policy, settings

registry_pages = PageBlueprint(
    "registry_pages", __name__, url_prefix="/<names:project_path>/-/container_registry"
)


@registry_pages.get("")
@project_member(at_least=Role.REPORTER)
def index(project: ProjectView) -> ResponseReturnValue:
    """List the repositories, and say how to sign in and how to connect a registry."""
    list_query(*CURSORS)
    found = domain.repositories_page(project.id, asked_slice(), session=db.session())
    host = registry_policy().host
    return render_template(
        "registry/index.html",
        project=project,
        page=page_links(found),
        is_connected=host is not None,
        host=host or EXAMPLE_HOST,
        image=root_name(project.path),
        ready=shown_configuration() if project.can_maintain else None,
    )


@registry_pages.get("/<int:repository_id>")
@project_member(at_least=Role.REPORTER)
def show(project: ProjectView, repository_id: int) -> ResponseReturnValue:
    """List the tags of a repository."""
    given, session = list_query("before"), db.session()
    repository = domain.get_repository(repository_id, project_id=project.id, session=session)
    found = domain.tags_after(
        repository, given.get("before", ""), limit=settings().page_size, session=session
    )
    last = found.tags[-1].name if found.has_more else None
    return render_template(
        "registry/show.html",
        project=project,
        repository=repository,
        page=page_links(Page(items=found.tags, next_before=last)),
        host=registry_policy().host or EXAMPLE_HOST,
    )
