"""Removes tags and repositories, first from the registry and then from the database.

Tags that the registry did not delete are still listed. The time of a removal comes from the
registry's clock, as in notifications. Everything pushed up to that time counts as removed.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import re2
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_delete, build_bulk_update
from domain.core.errors import InvalidError
from domain.core.types.base import get_column_values
from domain.delivery.queue import Backoff, DeliveryQueue, FailingDestination, QueueState
from domain.registry.client import RegistryClient
from domain.registry.repositories import RepositoryView, TagView, list_all_tags
from models import RegistryManifest, RegistryRemoval, RegistryRepository, RegistryTag

#: Tag that no rule removes, as clients of the API expect.
_PROTECTED_TAG = "latest"
MAX_REGEX_LENGTH = 255
#: Memory limit for regular expressions in bytes. RE2 always takes linear time.
_MAX_REGEX_MEMORY_BYTES = 1_000_000
_AGE_PATTERN = re.compile(r"(\d{1,6})\s*(h|hours?|d|days?|w|weeks?|months?)")
_HOURS_PER_UNIT = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24}
REMOVAL_QUEUE = DeliveryQueue(
    due_at=RegistryRemoval.due_at,
    claim_lifetime=timedelta(minutes=10),
    backoff=Backoff(first=timedelta(minutes=1), longest=timedelta(hours=1)),
)
_MAX_FAILURE_LENGTH = 255
#: Maximum number of waiting removals for one repository.
_MAX_WAITING_REMOVALS = 20


@dataclass(frozen=True, kw_only=True)
class RemovalRule:
    """A rule that selects the tags to remove.

    The rule selects tags by name and age. It never selects the newest tags, or tags whose names
    match the `keep` pattern.
    """

    delete: str
    keep: str = ""
    keep_newest: int = 0
    older_than: timedelta = timedelta(0)

    def check_patterns(self) -> None:
        """Check that the regular expressions of the rule are valid.

        Raise InvalidError for a malformed expression.
        """
        for name, pattern in (("name_regex_delete", self.delete), ("name_regex_keep", self.keep)):
            _compile_pattern(pattern, name)

    def convert_to_json_value(self) -> dict[str, str | int]:
        """Return the rule as a JSON object, which `parse_stored_rule` can parse."""
        return {
            "delete": self.delete,
            "keep": self.keep,
            "keep_newest": self.keep_newest,
            "older_than_seconds": int(self.older_than.total_seconds()),
        }

    def select_tags_to_remove(
        self, tags: Iterable[TagView], *, now: datetime
    ) -> tuple[TagView, ...]:
        """Return the tags that the rule removes, newest first."""
        delete, keep = _compile_pattern(self.delete, "name_regex_delete"), None
        if self.keep:
            keep = _compile_pattern(self.keep, "name_regex_keep")
        matching = [
            tag
            for tag in tags
            if tag.name != _PROTECTED_TAG
            and delete.fullmatch(tag.name)
            and not (keep and keep.fullmatch(tag.name))
        ]
        newest_first = sorted(matching, key=lambda tag: (tag.pushed_at, tag.name), reverse=True)
        limit = now - self.older_than
        return tuple(tag for tag in newest_first[self.keep_newest :] if tag.pushed_at <= limit)


def parse_stored_rule(stored: dict[str, str | int]) -> RemovalRule:
    """Parse a rule from the JSON object in the database."""
    return RemovalRule(
        delete=str(stored["delete"]),
        keep=str(stored["keep"]),
        keep_newest=int(stored["keep_newest"]),
        older_than=timedelta(seconds=int(stored["older_than_seconds"])),
    )


def parse_age(text: str) -> timedelta:
    """Parse an age such as `1h`, `7d`, `2 weeks` or `1month` (30 days).

    Raise InvalidError if the age is malformed.
    """
    found = _AGE_PATTERN.fullmatch(text.strip().lower())
    if found is None:
        message = "`older_than` must be an age such as 12h, 7d, 2w or 1month."
        raise InvalidError(message, field="older_than")
    return timedelta(hours=int(found[1]) * _HOURS_PER_UNIT[found[2][0]])


def _compile_pattern(pattern: str, name: str) -> Any:
    options = re2.Options()
    options.max_mem = _MAX_REGEX_MEMORY_BYTES
    options.never_capture = True
    options.log_errors = False
    if len(pattern) > MAX_REGEX_LENGTH:
        raise InvalidError(f"`{name}` can have at most {MAX_REGEX_LENGTH} characters.", field=name)
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        message = f"`{name}` must be a regular expression in RE2 syntax."
        raise InvalidError(message, field=name) from error


@dataclass(frozen=True, kw_only=True)
class ClaimedRemoval:
    """A removal that a worker has claimed. Without a rule, it removes the whole repository."""

    id: int
    repository_id: int
    rule: RemovalRule | None
    failures: int


@dataclass(frozen=True, kw_only=True)
class TagRemoval:
    """A tag to remove, and whether its image is kept because other tags refer to it."""

    tag: TagView
    #: True if other tags refer to the image, so that it is kept.
    is_shared: bool


@dataclass(frozen=True, kw_only=True)
class RemovalLimits:
    """Callbacks that limit the duration of a long removal and of its transactions."""

    #: Function that returns False when the time is up.
    goes_on: Callable[[], bool]
    #: Callback that commits before a request to the registry, which may be slow.
    between: Callable[[], None]


def plan_tag_removal(repository: RepositoryView, tag: TagView, *, session: Session) -> TagRemoval:
    """Return the removal of a tag, which depends on whether other tags refer to the same image."""
    return _plan_removals([tag], list_all_tags(repository, session=session))[0]


def _plan_removals(
    removed_tags: Iterable[TagView], existing_tags: Iterable[TagView]
) -> list[TagRemoval]:
    names = {tag.name for tag in removed_tags}
    staying = {tag.digest for tag in existing_tags if tag.name not in names}
    return [TagRemoval(tag=tag, is_shared=tag.digest in staying) for tag in removed_tags]


def remove_tag_in_registry(
    repository: RepositoryView, removal: TagRemoval, *, client: RegistryClient
) -> None:
    """Remove a tag from the registry, if it exists.

    Raise RegistryUnavailableError or RegistryRequestError if the registry fails.
    """
    tag = removal.tag
    present = client.find_digest(repository.path, tag.name)
    if present is None:
        return
    # If the tag was pushed again in the meantime, other tags may refer to its image.
    if removal.is_shared or present != tag.digest:
        client.remove_tag(repository.path, tag.name)
    else:
        client.delete_manifest(repository.path, tag.digest)


def store_tag_removal(repository: RepositoryView, tag: TagView, *, session: Session) -> None:
    """Record the removal of a tag, unless the tag was pushed again."""
    session.execute(
        build_bulk_update(RegistryTag)
        .where(
            RegistryTag.repository_id == repository.id,
            RegistryTag.name == tag.name,
            RegistryTag.pushed_at == tag.pushed_at,
        )
        .values(removed_at=RegistryTag.pushed_at)
    )


def queue_removal(
    repository: RepositoryView, rule: RemovalRule | None, *, session: Session, now: datetime
) -> None:
    """Queue the removal of tags, or of the whole repository if there is no rule.

    Raise InvalidError if too many removals of this repository are waiting.
    """
    if rule is None and repository.is_going:
        return
    if rule is not None:
        rule.check_patterns()
    waiting = select(func.count()).where(RegistryRemoval.repository_id == repository.id)
    if (session.scalar(waiting) or 0) >= _MAX_WAITING_REMOVALS:
        message = "Too many deletions are queued for this repository. Try again later."
        raise InvalidError(message)
    session.add(
        RegistryRemoval(
            repository_id=repository.id,
            rule=rule.convert_to_json_value() if rule else None,
            requested_at=now,
            due_at=now,
            failures=0,
        )
    )


def claim_removal(*, session: Session, now: datetime) -> ClaimedRemoval | None:
    """Claim the removal that has been due for the longest time.

    Return None if no removal is due.
    """
    row = REMOVAL_QUEUE.claim_due_rows(RegistryRemoval, session=session, now=now).scalar()
    if row is None:
        return None
    rule = None if row.rule is None else parse_stored_rule(row.rule)
    return ClaimedRemoval(**get_column_values(row, ClaimedRemoval) | {"rule": rule})


def store_removal_failure(
    removal: ClaimedRemoval, reason: str, *, session: Session, now: datetime
) -> None:
    """Store the reason for a failed removal, and schedule the next attempt."""
    REMOVAL_QUEUE.schedule_retry(
        removal.id,
        removal.failures + 1,
        session=session,
        now=now,
        failures=removal.failures + 1,
        failure=reason[:_MAX_FAILURE_LENGTH],
    )


def release_claimed_removal(removal: ClaimedRemoval, *, session: Session, now: datetime) -> None:
    """Release an unfinished removal for the next run."""
    session.execute(
        build_bulk_update(RegistryRemoval)
        .where(RegistryRemoval.id == removal.id)
        .values(due_at=now)
    )


def finish_removal(removal: ClaimedRemoval, *, session: Session) -> None:
    """Delete a finished removal from the queue."""
    session.execute(delete(RegistryRemoval).where(RegistryRemoval.id == removal.id))


def remove_tags(
    repository: RepositoryView,
    rule: RemovalRule,
    *,
    client: RegistryClient,
    session: Session,
    now: datetime,
    pace: RemovalLimits,
) -> bool:
    """Remove matching tags one by one.

    Return False if time runs out before all matching tags are removed.
    """
    existing = list_all_tags(repository, session=session)
    pace.between()
    for each in _plan_removals(rule.select_tags_to_remove(existing, now=now), existing):
        if not pace.goes_on():
            return False
        remove_tag_in_registry(repository, each, client=client)
        store_tag_removal(repository, each.tag, session=session)
        pace.between()
    return True


def remove_repository(
    repository: RepositoryView,
    *,
    client: RegistryClient,
    session: Session,
    pace: RemovalLimits,
) -> bool:
    """Delete all manifests of a repository, and then the repository.

    Return False if time runs out first. Images that are pushed in the meantime are kept.
    """
    row = session.get_one(RegistryRepository, repository.id)
    pushed_until = row.pushed_at
    known = session.scalars(
        select(RegistryManifest.digest).where(RegistryManifest.repository_id == repository.id)
    ).all()
    pace.between()
    # Include tags that were pushed before the registry sent notifications.
    tagged = (
        client.find_digest(repository.path, tag) for tag in client.iterate_tags(repository.path)
    )
    for digest in dict.fromkeys([*(each for each in tagged if each), *known]):
        if not pace.goes_on():
            return False
        client.delete_manifest(repository.path, digest)
    session.execute(
        build_bulk_update(RegistryRepository)
        .where(RegistryRepository.id == repository.id)
        .values(removed_at=pushed_until)
    )
    return True


def get_removal_queue_state(*, session: Session, now: datetime) -> QueueState:
    """Return the state of the queue of removals, which wait since users requested them."""
    return REMOVAL_QUEUE.get_state(
        since=RegistryRemoval.requested_at,
        has_failed=RegistryRemoval.failures > 0,
        session=session,
        now=now,
    )


def list_failing_removals(*, session: Session) -> Sequence[FailingDestination]:
    """Return the removals whose last attempt failed, oldest first."""
    rows = session.execute(
        select(RegistryRemoval, RegistryRepository.name)
        .join(RegistryRepository, RegistryRepository.id == RegistryRemoval.repository_id)
        .where(RegistryRemoval.failures > 0)
        .order_by(RegistryRemoval.requested_at, RegistryRemoval.id)
    )
    return [
        FailingDestination(
            id=str(row.id),
            name=name,
            about="some tags" if row.rule else "the whole repository",
            waiting=1,
            attempts=row.failures,
            failing_since=row.requested_at,
            last_error=row.failure,
            next_attempt_at=row.due_at,
        )
        for row, name in rows
    ]


def give_up_removal(removal_id: int, *, session: Session) -> int:
    """Delete a removal from the queue, and return the number of deleted removals.

    Tags that the registry has not deleted are still listed, so they can be deleted again.
    """
    deleted = session.execute(
        build_bulk_delete(RegistryRemoval)
        .where(RegistryRemoval.id == removal_id)
        .returning(RegistryRemoval.id)
    )
    return len(deleted.all())
