"""/<project>/-/container_registry: repositories and tags, signing in, and a ready configuration."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.database.paging import Page
from domain.errors import InvalidError
from domain.projects.views import ProjectView
from domain.registry import actions
from domain.registry import repositories as domain
from domain.registry.client import RegistryRefusedError, RegistryUnavailableError
from domain.registry.configuration import EXAMPLE_HOST
from domain.registry.names import root_name
from web.access.marks import permitted
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.links import page_links
from web.pages.list_query import CURSORS, asked_slice, list_query, page_size
from web.registry.configuration import shown_configuration
from web.services import registry_policy

registry_pages = PageBlueprint(
    "registry_pages", __name__, url_prefix="/<names:project_path>/-/container_registry"
)


@registry_pages.get("")
@permitted("registry_repositories.index")
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
@permitted("registry_repositories.tags")
def show(project: ProjectView, repository_id: int) -> ResponseReturnValue:
    """List the tags of a repository."""
    given, session = list_query("before"), db.session()
    repository = domain.get_repository(repository_id, project_id=project.id, session=session)
    found = domain.tags_after(
        repository, given.get("before", ""), limit=page_size(), session=session
    )
    last = found.tags[-1].name if found.has_more else None
    return render_template(
        "registry/show.html",
        project=project,
        repository=repository,
        page=page_links(Page(items=found.tags, next_before=last)),
        host=registry_policy().host or EXAMPLE_HOST,
        may_delete=_may_delete(project) and not repository.is_going,
    )


def _may_delete(project: ProjectView) -> bool:
    """Return whether the page has buttons that delete: where a registry can be told."""
    return project.can_maintain and not project.is_archived and bool(registry_policy().api_url)


@registry_pages.post("/<int:repository_id>/delete")
@permitted("registry_repositories.delete")
def delete(project: ProjectView, repository_id: int) -> ResponseReturnValue:
    """Delete a repository with all its images, in the background."""
    repository = domain.get_repository(repository_id, project_id=project.id, session=db.session())
    try:
        actions.delete_repository(work(), project, repository_id)
    except InvalidError as error:
        flash(str(error), "error")
    else:
        flash(f"{repository.path} is being deleted, with all its images.", "info")
    return redirect(url_for("registry_pages.index", project_path=project.path))


@registry_pages.post("/<int:repository_id>/tags/<tag_name>/delete")
@permitted("registry_repositories.delete_tag")
def delete_tag(project: ProjectView, repository_id: int, tag_name: str) -> ResponseReturnValue:
    """Delete a tag of a repository, at once."""
    try:
        actions.delete_tag(work(), project, repository_id, tag_name)
    except (RegistryUnavailableError, RegistryRefusedError) as error:
        flash(f"The tag {tag_name} was not deleted. {error}", "error")
    else:
        flash(f"The tag {tag_name} was deleted.")
    return redirect(
        url_for("registry_pages.show", project_path=project.path, repository_id=repository_id)
    )
