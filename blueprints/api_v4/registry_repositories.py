"""/api/v4/…/registry/repositories: the container registry's repositories and tags."""

from flask import Blueprint, Response

from domain.access.roles import Role
from domain.errors import InvalidError, NotFoundError, QueryError
from domain.projects.access import get_project_for
from domain.projects.views import GroupView, ProjectView, Viewer
from domain.registry import repositories as domain
from domain.registry.repositories import RepositoryView
from domain.releases.schedule import BY_ID
from domain.types.base import Found
from web.api.operations import operation
from web.api.schemas.registry.registry import (
    RegistryRepository,
    RegistryTag,
    RegistryTagName,
    RepositoryListQuery,
    RepositoryQuery,
    TagListQuery,
    TagRemovalBody,
)
from web.extensions import db
from web.registry.removing import remove_repository, remove_tag, remove_tags
from web.releases.requested import requested_release
from web.services import registry_policy

registry_repositories = Blueprint("registry_repositories", __name__)
_ALL = "/projects/<path:reference>/registry/repositories"
_ONE = f"{_ALL}/<int:repository_id>"
_TAGS = f"{_ONE}/tags"
_TAG = f"{_TAGS}/<tag_name>"
#: From this release on, lists of tags have no numbered pages.
_OFFSET_PAGINATION = BY_ID["registry-tags-offset-pagination"]


@registry_repositories.get(_ALL)
@operation("registry_repositories.index", query=RepositoryListQuery, returns=RegistryRepository)
def index(project: ProjectView, query: RepositoryListQuery) -> Found[RegistryRepository]:
    """List the registry repositories of a project."""
    return _found((project.id,), query)


@registry_repositories.get("/groups/<path:reference>/registry/repositories")
@operation(
    "registry_repositories.index_of_group", query=RepositoryListQuery, returns=RegistryRepository
)
def index_of_group(group: GroupView, query: RepositoryListQuery) -> Found[RegistryRepository]:
    """List the registry repositories of all projects of a group."""
    return _found(domain.projects_below(group.path, session=db.session()), query)


@registry_repositories.get("/registry/repositories/<int:repository_id>")
@operation("registry_repositories.show", query=RepositoryQuery, returns=RegistryRepository)
def show(repository_id: int, viewer: Viewer, query: RepositoryQuery) -> RegistryRepository:
    """Show a registry repository."""
    session = db.session()
    repository = domain.get_repository(repository_id, session=session)
    try:
        get_project_for(repository.project_path, viewer, at_least=Role.REPORTER, session=session)
    except NotFoundError as error:
        raise domain.RepositoryNotFoundError from error
    return _presented(repository, query)


@registry_repositories.delete(_ONE)
@operation("registry_repositories.delete", status=202)
def delete(project: ProjectView, repository_id: int) -> Response:
    """Delete a registry repository with all its images, in the background."""
    remove_repository(_repository(project, repository_id))
    return Response(status=202)


@registry_repositories.get(_TAGS)
@operation("registry_repositories.tags", query=TagListQuery, returns=RegistryTagName)
def tags(project: ProjectView, repository_id: int, query: TagListQuery) -> Found[RegistryTagName]:
    """List the tags of a registry repository."""
    repository, session = _repository(project, repository_id), db.session()
    if _is_by_key(query):
        page = domain.tags_after(repository, query.cursor, limit=query.size, session=session)
        return Found(
            items=_tag_names(page.tags),
            next_cursor=page.tags[-1].name if page.has_more else None,
        )
    found = domain.numbered_tags(repository, offset=query.offset, limit=query.size, session=session)
    return Found(items=_tag_names(found), total=repository.tags_count)


def _is_by_key(query: TagListQuery) -> bool:
    """Return whether a page is by key; raise QueryError for a number beside it."""
    if query.pagination != "keyset":
        return _OFFSET_PAGINATION.applies_in(requested_release())
    if query.page != 1:
        message = "page can only be 1: follow the link with rel=next to the next page"
        raise QueryError(message, field="page")
    return True


@registry_repositories.get(_TAG)
@operation("registry_repositories.tag", returns=RegistryTag)
def tag(project: ProjectView, repository_id: int, tag_name: str) -> RegistryTag:
    """Show a tag of a registry repository."""
    found = domain.get_tag(_repository(project, repository_id), tag_name, session=db.session())
    return RegistryTag.of(found, registry_policy().host)


@registry_repositories.delete(_TAG)
@operation("registry_repositories.delete_tag")
def delete_tag(project: ProjectView, repository_id: int, tag_name: str) -> None:
    """Delete a tag of a registry repository, immediately."""
    repository = _repository(project, repository_id)
    remove_tag(repository, domain.get_tag(repository, tag_name, session=db.session()))


@registry_repositories.delete(_TAGS)
@operation("registry_repositories.delete_tags", body=TagRemovalBody, status=202)
def delete_tags(project: ProjectView, repository_id: int, body: TagRemovalBody) -> Response:
    """Delete the tags of a registry repository that match, in the background."""
    repository, rule = _repository(project, repository_id), body.rule
    if not rule.delete:
        message = "name_regex_delete is missing"
        raise InvalidError(message, field="name_regex_delete")
    remove_tags(repository, rule)
    return Response(status=202)


def _found(project_ids: tuple[int, ...], query: RepositoryListQuery) -> Found[RegistryRepository]:
    found, total = domain.list_repositories(
        project_ids, offset=query.offset, limit=query.size, session=db.session()
    )
    return Found(items=[_presented(each, query) for each in found], total=total)


def _presented(
    repository: RepositoryView, query: RepositoryListQuery | RepositoryQuery
) -> RegistryRepository:
    tags_of_it = domain.all_tags(repository, session=db.session()) if query.tags else None
    return RegistryRepository.of(
        repository,
        registry_policy().host,
        tags_count=repository.tags_count if query.tags_count else None,
        tags=None if tags_of_it is None else _tag_names(tags_of_it),
    )


def _repository(project: ProjectView, repository_id: int) -> RepositoryView:
    return domain.get_repository(repository_id, project_id=project.id, session=db.session())


def _tag_names(found: tuple[domain.TagView, ...]) -> list[RegistryTagName]:
    host = registry_policy().host
    return [RegistryTagName.of(each, host) for each in found]
