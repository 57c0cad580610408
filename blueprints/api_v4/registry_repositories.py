"""/api/v4/…/registry/repositories: the container registry's repositories and tags."""

from dataclasses import replace
from http import HTTPStatus

from domain.core.errors import QueryError
from domain.core.types.base import Found
from domain.projects.views import ProjectView
from domain.registry import actions
from domain.registry.repositories import get_repository, numbered_tags, tags_after
from domain.registry.types import RegistryTagName, TagListQuery
from domain.releases.schedule import BY_ID
from web.api.operations import Resources, operation
from web.extensions import db
from web.releases.requested_release import requested_release
from web.services import registry_policy

registry_repositories = Resources("registry_repositories", __name__)
_ALL = "/projects/<path:reference>/registry/repositories"
_ONE = f"{_ALL}/<int:repository_id>"
_TAGS = f"{_ONE}/tags"
_TAG = f"{_TAGS}/<tag_name>"
#: Change that removes numbered pages from lists of tags.
_OFFSET_PAGINATION = BY_ID["registry-tags-offset-pagination"]

registry_repositories.bind("GET", _ALL, actions.list_repositories)
registry_repositories.bind(
    "GET", "/groups/<path:reference>/registry/repositories", actions.list_repositories_of_group
)
registry_repositories.bind(
    "GET", "/registry/repositories/<int:repository_id>", actions.show_repository
)
registry_repositories.bind("DELETE", _ONE, actions.delete_repository, status=HTTPStatus.ACCEPTED)
registry_repositories.bind("GET", _TAG, actions.show_tag)
registry_repositories.bind("DELETE", _TAG, actions.delete_tag)
registry_repositories.bind("DELETE", _TAGS, actions.delete_tags, status=HTTPStatus.ACCEPTED)


@registry_repositories.get(_TAGS)
@operation("registry_repositories.tags", query=TagListQuery, returns=RegistryTagName)
def tags(project: ProjectView, repository_id: int, query: TagListQuery) -> Found[RegistryTagName]:
    """List the tags of a registry repository."""
    session, host = db.session(), registry_policy().host
    repository = get_repository(repository_id, project_id=project.id, session=session)
    if _is_by_key(query):
        page = tags_after(repository, query.cursor, limit=query.size, session=session)
        return Found(
            items=[RegistryTagName.of(each, host) for each in page.tags],
            next_cursor=page.tags[-1].name if page.has_more else None,
        )
    found = numbered_tags(repository, offset=query.offset, limit=query.size, session=session)
    items = [RegistryTagName.of(each, host) for each in found]
    numbered = Found(items=items, total=repository.tags_count)
    if numbered.has_more_than(query.page * query.size):
        # A later release removes numbered pages, so links lead to keyset pages, which stay.
        return replace(numbered, next_cursor=items[-1].name)
    return numbered


def _is_by_key(query: TagListQuery) -> bool:
    """Return whether the page is requested by key.

    Raise QueryError if a keyset request also has a page number.
    """
    if query.pagination != "keyset":
        return _OFFSET_PAGINATION.applies_in(requested_release())
    if query.page != 1:
        message = (
            "`page` must be 1 with keyset pagination. Follow the link with rel=next to the next "
            "page."
        )
        raise QueryError(message, field="page")
    return True
