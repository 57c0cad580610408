"""Actions on repositories and tags of the container registry, and on its signing keys."""

from collections.abc import Sequence
from datetime import timedelta

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.access.checks import check_role
from domain.access.roles import Role
from domain.audit.events import EventKind
from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import InvalidError, NotFoundError
from domain.core.keyring import Keyring
from domain.core.types.pagination import ListPage
from domain.delivery.outgoing.deadlines import run_with_deadline
from domain.delivery.outgoing.errors import DeadlineExceededError
from domain.projects.access import get_project
from domain.projects.views import GroupView, ProjectView, get_viewer
from domain.registry import repositories, signing_keys
from domain.registry.client import RegistryPolicy, RegistryUnavailableError, open_registry_client
from domain.registry.removal import (
    plan_tag_removal,
    queue_removal,
    remove_tag_in_registry,
    store_tag_removal,
)
from domain.registry.repositories import RepositoryNotFoundError, RepositoryView, get_repository
from domain.registry.types import (
    CreatedRegistryKey,
    NewRegistryKey,
    RegistryKey,
    RegistryRepository,
    RegistryTag,
    RegistryTagSummary,
    RepositoryListQuery,
    RepositoryQuery,
    TagRemovalBody,
)

#: Timeout for calls to the registry in seconds. It is shorter than the timeout for requests to this
#: service.
_REGISTRY_TIMEOUT_SECONDS = 15


@read_action("registry_repositories.index")
def list_repositories(
    work: UnitOfWork, project: ProjectView, query: RepositoryListQuery
) -> ListPage[RegistryRepository]:
    """List the registry repositories of a project."""
    return _list_repositories(work, (project.id,), query)


@read_action("registry_repositories.index_of_group")
def list_group_repositories(
    work: UnitOfWork, group: GroupView, query: RepositoryListQuery
) -> ListPage[RegistryRepository]:
    """List the registry repositories of all projects of a group."""
    return _list_repositories(
        work, repositories.find_project_ids_in_group(group.path, session=work.session), query
    )


@read_action("registry_repositories.show")
def show_repository(
    work: UnitOfWork, repository_id: int, query: RepositoryQuery
) -> RegistryRepository:
    """Show a registry repository.

    Raise NotFoundError if the repository does not exist. Raise ForbiddenError if the viewer does
    not have the Reporter role in its project.
    """
    repository = get_repository(repository_id, session=work.session)
    try:
        project = get_project(repository.project_path, get_viewer(work), session=work.session)
    except NotFoundError as error:
        raise RepositoryNotFoundError from error
    check_role(project, Role.REPORTER)
    return _build_repository(work, repository, query)


@action("registry_repositories.delete")
def delete_repository(work: UnitOfWork, project: ProjectView, repository_id: int) -> None:
    """Delete a registry repository and all its images in the background.

    Raise NotFoundError if it does not exist. Raise InvalidError if too many removals are waiting.
    """
    repository = get_repository(repository_id, project_id=project.id, session=work.session)
    queue_removal(repository, None, session=work.session, now=work.now)
    _record_event(work, EventKind.REGISTRY_REPOSITORY_REMOVED, repository.path, project)


@read_action("registry_repositories.tag")
def show_tag(
    work: UnitOfWork, project: ProjectView, repository_id: int, tag_name: str
) -> RegistryTag:
    """Show a tag of a registry repository.

    Raise NotFoundError if the repository or the tag does not exist.
    """
    repository = get_repository(repository_id, project_id=project.id, session=work.session)
    found = repositories.get_tag(repository, tag_name, session=work.session)
    return RegistryTag.from_view(found, work.policy(RegistryPolicy).host)


@action("registry_repositories.delete_tag")
def delete_tag(
    work: UnitOfWork, project: ProjectView, repository_id: int, tag_name: str
) -> RegistryTag:
    """Delete a tag from a registry repository.

    The tag is first removed in the registry, while the request waits. Raise NotFoundError if the
    tag does not exist. Raise RegistryUnavailableError or RegistryRequestError if the registry
    fails. After an error, the tag is still listed.
    """
    session, policy = work.session, work.policy(RegistryPolicy)
    repository = get_repository(repository_id, project_id=project.id, session=session)
    tag = repositories.get_tag(repository, tag_name, session=session)
    plan = plan_tag_removal(repository, tag, session=session)
    with open_registry_client(
        policy, session=session, keyring=work.policy(Keyring), now=work.now
    ) as client:
        commit_to_release_locks(session)  # The next request may be slow.
        try:
            run_with_deadline(
                _REGISTRY_TIMEOUT_SECONDS,
                lambda: remove_tag_in_registry(repository, plan, client=client),
                stop=client.close,
            )
        except DeadlineExceededError as error:
            message = (
                f"The container registry did not respond within {_REGISTRY_TIMEOUT_SECONDS} "
                "seconds. Try "
                "again later."
            )
            raise RegistryUnavailableError(message) from error
    store_tag_removal(repository, tag, session=session)
    _record_event(work, EventKind.REGISTRY_TAGS_REMOVED, tag.path, project, digest=tag.digest)
    return RegistryTag.from_view(tag, policy.host)


@action("registry_repositories.delete_tags")
def delete_tags(
    work: UnitOfWork, project: ProjectView, repository_id: int, which: TagRemovalBody
) -> None:
    """Delete the matching tags from a registry repository in the background.

    Raise NotFoundError if the repository does not exist. Raise InvalidError for a rule that is
    empty or malformed.
    """
    repository = get_repository(repository_id, project_id=project.id, session=work.session)
    rule = which.rule
    if not rule.delete:
        raise InvalidError("`name_regex_delete` is missing.", field="name_regex_delete")
    queue_removal(repository, rule, session=work.session, now=work.now)
    _record_event(
        work,
        EventKind.REGISTRY_TAGS_REMOVED,
        repository.path,
        project,
        **rule.convert_to_json_value(),
    )


def _record_event(
    work: UnitOfWork, kind: EventKind, image: str, project: ProjectView, **details: object
) -> None:
    about = {"project": project.path, **details}
    work.record_audit_event(kind, subject=image, event_namespace=project.namespace, details=about)


@action("registry_keys.rotate", command="rotate-key")
def rotate_key(work: UnitOfWork, new: NewRegistryKey) -> CreatedRegistryKey:
    """Create a signing key that replaces the current key after a notice period."""
    session, keyring, now = work.session, work.policy(Keyring), work.now
    notice = timedelta(hours=new.notice_hours)
    kid = signing_keys.rotate_signing_key(notice, session=session, keyring=keyring, now=now)
    if new.forget_former:
        signing_keys.delete_former_keys(session=session, keyring=keyring, now=now)
    work.record_audit_event(EventKind.REGISTRY_KEY_ROTATED, subject=kid, details=new.model_dump())
    found = signing_keys.list_keys(session=session, keyring=keyring, now=now)
    return CreatedRegistryKey(kid=kid, keys=[RegistryKey.model_validate(each) for each in found])


def _list_repositories(
    work: UnitOfWork, project_ids: Sequence[int], query: RepositoryListQuery
) -> ListPage[RegistryRepository]:
    found, total = repositories.list_repositories(
        project_ids, offset=query.offset, limit=query.page_size, session=work.session
    )
    return ListPage(items=[_build_repository(work, each, query) for each in found], total=total)


def _build_repository(
    work: UnitOfWork, repository: RepositoryView, query: RepositoryListQuery | RepositoryQuery
) -> RegistryRepository:
    host = work.policy(RegistryPolicy).host
    tags = repositories.list_all_tags(repository, session=work.session) if query.tags else ()
    return RegistryRepository.from_view(
        repository,
        host,
        tags_count=repository.tags_count if query.tags_count else None,
        tags=[RegistryTagSummary.from_view(each, host) for each in tags] if query.tags else None,
    )
