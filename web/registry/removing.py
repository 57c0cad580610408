"""Removes tags and repositories for pages and the API, with their audit events."""

from domain.audit.events import Event, EventKind
from domain.database.locks import release_locks
from domain.registry.client import RegistryUnavailableError
from domain.registry.connection import open_registry
from domain.registry.removal import (
    plan_tag,
    queue_removal,
    record_removed_tag,
    remove_in_registry,
)
from domain.registry.removal_rules import RemovalRule
from domain.registry.repositories import RepositoryView, TagView
from web.extensions import db
from web.http.audit_events import record_event
from web.outgoing.deadlines import run_within
from web.outgoing.errors import DeadlineError
from web.services import now, registry_policy, services

#: Less than a request may take, whatever the registry does.
_DEADLINE_SECONDS = 15


def remove_repository(repository: RepositoryView) -> None:
    """Let the worker delete a repository with all its images; raises InvalidError."""
    queue_removal(repository, None, session=db.session(), now=now())
    record_event(
        Event(kind=EventKind.REGISTRY_REPOSITORY_REMOVED, subject=repository.path, details={})
    )


def remove_tags(repository: RepositoryView, rule: RemovalRule) -> None:
    """Let the worker delete the tags of a rule; raises InvalidError."""
    queue_removal(repository, rule, session=db.session(), now=now())
    record_event(
        Event(kind=EventKind.REGISTRY_TAGS_REMOVED, subject=repository.path, details=rule.as_json())
    )


def remove_tag(repository: RepositoryView, tag: TagView) -> None:
    """Remove a tag in the registry while the request waits, then here.

    Raises RegistryUnavailableError and RegistryRefusedError; then the tag is still listed.
    """
    session = db.session()
    plan = plan_tag(repository, tag, session=session)
    with open_registry(
        registry_policy(), session=session, keyring=services().keyring, now=now()
    ) as client:
        release_locks(session)  # the registry may take seconds
        try:
            run_within(
                _DEADLINE_SECONDS,
                lambda: remove_in_registry(repository, plan, client=client),
                stop=client.close,
            )
        except DeadlineError as error:
            message = f"The container registry took more than {_DEADLINE_SECONDS} seconds."
            raise RegistryUnavailableError(message) from error
    record_removed_tag(repository, tag, session=session)
    details = {"digest": tag.digest}
    record_event(Event(kind=EventKind.REGISTRY_TAGS_REMOVED, subject=tag.path, details=details))
