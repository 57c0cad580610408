"""/api/v4/…/registry/repositories: the container registry's repositories and tags."""

from dataclasses import replace
from http import HTTPStatus

from domain.core.errors import QueryError
from domain.core.types.pagination import ListPage
from domain.projects.views import ProjectView
from domain.registry import actions
from domain.registry.repositories import get_repository, list_tags_after, list_tags_with_offset
from domain.registry.types import RegistryTagSummary, TagListQuery
from domain.releases.schedule import CHANGES_BY_ID
from web.api.operations import ResourceBlueprint, declare_operation
from web.extensions import db
from web.releases.requested_release import get_requested_release
from web.services import get_registry_policy

registry_repositories = ResourceBlueprint("registry_repositories", __name__)
_COLLECTION_PATH = "/projects/<path:reference>/registry/repositories"
_ITEM_PATH = f"{_COLLECTION_PATH}/<int:repository_id>"
_TAGS_PATH = f"{_ITEM_PATH}/tags"
_TAG_PATH = f"{_TAGS_PATH}/<tag_name>"
#: API change that removes numbered pages from tag lists.
_OFFSET_PAGINATION_CHANGE = CHANGES_BY_ID["registry-tags-offset-pagination"]

registry_repositories.bind_action("GET", _COLLECTION_PATH, actions.list_repositories)
registry_repositories.bind_action(
    "GET", "/groups/<path:reference>/registry/repositories", actions.list_group_repositories
)
registry_repositories.bind_action(
    "GET", "/registry/repositories/<int:repository_id>", actions.show_repository
)
registry_repositories.bind_action(
    "DELETE", _ITEM_PATH, actions.delete_repository, status=HTTPStatus.ACCEPTED
)
registry_repositories.bind_action("GET", _TAG_PATH, actions.show_tag)
registry_repositories.bind_action("DELETE", _TAG_PATH, actions.delete_tag)
registry_repositories.bind_action(
    "DELETE", _TAGS_PATH, actions.delete_tags, status=HTTPStatus.ACCEPTED
)


@registry_repositories.get(_TAGS_PATH)
@declare_operation("registry_repositories.tags", query=TagListQuery, returns=RegistryTagSummary)
def tags(
    project: ProjectView, repository_id: int, query: TagListQuery
) -> ListPage[RegistryTagSummary]:
    """List the tags of a registry repository."""
    session, host = db.session(), get_registry_policy().host
    repository = get_repository(repository_id, project_id=project.id, session=session)
    if _is_keyset_page(query):
        page = list_tags_after(repository, query.cursor, limit=query.page_size, session=session)
        return ListPage(
            items=[RegistryTagSummary.from_view(each, host) for each in page.tags],
            next_cursor=page.tags[-1].name if page.has_more else None,
        )
    found = list_tags_with_offset(
        repository, offset=query.offset, limit=query.page_size, session=session
    )
    items = [RegistryTagSummary.from_view(each, host) for each in found]
    numbered = ListPage(items=items, total=repository.tags_count)
    if numbered.has_more_than(query.page * query.page_size):
        # A later release removes numbered pages, so links already use keyset pagination.
        return replace(numbered, next_cursor=items[-1].name)
    return numbered


def _is_keyset_page(query: TagListQuery) -> bool:
    """Return whether the request uses keyset pagination.

    Raise QueryError if a keyset request also has a page number.
    """
    if query.pagination != "keyset":
        return _OFFSET_PAGINATION_CHANGE.applies_in(get_requested_release())
    if query.page != 1:
        message = (
            "`page` must be 1 with keyset pagination. Follow the link with rel=next to the next "
            "page."
        )
        raise QueryError(message, field="page")
    return True
