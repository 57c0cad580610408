"""Parses the event envelopes that the registry sends, and stores their events.

The format is defined by Docker's registry ("Work with notifications"). The registry retries an
event until it receives a 2xx response, and sends nothing else in the meantime. Irrelevant events
are therefore skipped, and only a body that is not an envelope is rejected.

Events may be repeated, late or out of order. Each row keeps the latest time of each kind of event,
so the result does not depend on order or repetition. A tag exists if its latest push is newer than
all of the following:

- the removal of the tag
- the deletion of its manifest
- the removal of its repository
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import orjson
from sqlalchemy import case, func, or_
from sqlalchemy.orm import InstrumentedAttribute, Session

from domain.core.database.bulk_statements import build_bulk_update, build_session_insert
from domain.core.errors import DomainError
from domain.registry.repositories import (
    DIGEST_PATTERN,
    TAG_PATTERN,
    belongs_to_deleted_project,
    find_repository_project,
    is_repository_name,
)
from models import RegistryManifest, RegistryRepository, RegistryTag

#: Maximum size of a body in bytes. An event is smaller than 2 KiB, and the registry sends events
#: one at a time.
MAX_BODY_BYTES = 1024 * 1024
MAX_EVENTS = 200
_MAX_MEDIA_TYPE_LENGTH = 255
_MAX_SIZE = 2**63 - 1
#: Media types of image manifests. The first reference in a manifest is the configuration, and the
#: others are layers.
_IMAGE_MEDIA_TYPES = frozenset(
    {
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
    }
)
_MANIFEST_MEDIA_TYPES = _IMAGE_MEDIA_TYPES | {
    "application/vnd.docker.distribution.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v1+prettyjws",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.index.v1+json",
}
_FIELD_PATTERNS = {"digest": DIGEST_PATTERN, "tag": TAG_PATTERN}
#: Results of events, as shown in metrics.
STORED, UNKNOWN_PROJECT = "stored", "unknown_project"


class MissingNotificationSecretError(DomainError):
    """Error for a request without the notification secret."""


class InvalidEnvelopeError(DomainError):
    """Error for a body that is not an envelope of events, or that contains too many events."""


class RegistryChangeKind(Enum):
    """The kind of change that a registry event reports, such as a pushed manifest."""

    #: Push of a layer or configuration, including a mount from another repository.
    CONTENT_PUSHED = "content pushed"
    MANIFEST_PUSHED = "manifest pushed"
    MANIFEST_DELETED = "manifest deleted"
    TAG_REMOVED = "tag removed"
    REPOSITORY_REMOVED = "repository removed"


@dataclass(frozen=True, kw_only=True)
class RegistryEvent:
    """A change in the registry, with its time according to the registry's clock."""

    change: RegistryChangeKind
    repository: str
    moment: datetime
    #: Digest of the content. Empty if the event contains no digest.
    digest: str = ""
    tag: str = ""
    media_type: str | None = None
    total_size: int | None = None
    config_digest: str | None = None


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """The relevant events in a notification, and the number of skipped events."""

    events: tuple[RegistryEvent, ...]
    left_out: int


def parse_envelope(content: bytes) -> Envelope:
    """Parse the body of a notification, and return its events.

    Raise InvalidEnvelopeError if the body is not an envelope or contains too many events.
    """
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise InvalidEnvelopeError("The body is not valid JSON.") from error
    given = body.get("events") if isinstance(body, dict) else None
    if not isinstance(given, list):
        raise InvalidEnvelopeError("The body must be a JSON object with the array `events`.")
    if len(given) > MAX_EVENTS:
        raise InvalidEnvelopeError(f"`events` can contain at most {MAX_EVENTS} events.")
    events = tuple(event for each in given if (event := _parse_event(each)) is not None)
    return Envelope(events=events, left_out=len(given) - len(events))


def _parse_event(given: object) -> RegistryEvent | None:
    target = given.get("target") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(target, dict):
        return None
    moment, repository = _parse_time(given.get("timestamp")), target.get("repository")
    if moment is None or not isinstance(repository, str) or not is_repository_name(repository):
        return None
    event = {"repository": repository, "moment": moment}
    match given.get("action"):
        case "push" | "mount":
            return _parse_push(event, target)
        case "delete":
            return _parse_deletion(event, target)
        case _:
            return None


def _parse_time(value: object) -> datetime | None:
    """Parse a time in RFC 3339 format, and truncate the registry's nanoseconds to microseconds."""
    try:
        read = datetime.fromisoformat(value) if isinstance(value, str) else None
        return read.astimezone(UTC) if read is not None and read.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _parse_push(event: Mapping[str, Any], target: Mapping[str, object]) -> RegistryEvent | None:
    digest, tag = _get_text_field(target, "digest"), _get_text_field(target, "tag")
    media_type = _parse_media_type(target.get("mediaType"))
    if digest is None or tag is None or not digest:
        return None
    if media_type not in _MANIFEST_MEDIA_TYPES and not tag:
        return RegistryEvent(change=RegistryChangeKind.CONTENT_PUSHED, **event)
    return RegistryEvent(
        change=RegistryChangeKind.MANIFEST_PUSHED,
        digest=digest,
        tag=tag,
        media_type=media_type,
        **_parse_image_size_and_configuration(media_type, target.get("references")),
        **event,
    )


def _parse_deletion(event: Mapping[str, Any], target: Mapping[str, object]) -> RegistryEvent | None:
    digest, tag = _get_text_field(target, "digest"), _get_text_field(target, "tag")
    if digest is None or tag is None:
        return None
    if digest:
        return RegistryEvent(change=RegistryChangeKind.MANIFEST_DELETED, digest=digest, **event)
    if tag:
        return RegistryEvent(change=RegistryChangeKind.TAG_REMOVED, tag=tag, **event)
    return RegistryEvent(change=RegistryChangeKind.REPOSITORY_REMOVED, **event)


def _get_text_field(target: Mapping[str, object], name: str) -> str | None:
    """Return a text field of an event's target.

    Return an empty string if the field is missing, or None if the field is malformed.
    """
    value = target.get(name) or ""
    if not isinstance(value, str):
        return None
    return value if not value or _FIELD_PATTERNS[name].fullmatch(value) else None


def _parse_media_type(value: object) -> str | None:
    is_one = isinstance(value, str) and value.isascii() and value.isprintable()
    return str(value) if is_one and 0 < len(str(value)) <= _MAX_MEDIA_TYPE_LENGTH else None


def _parse_image_size_and_configuration(
    media_type: str | None, references: object
) -> dict[str, Any]:
    """Return the size and the configuration of an image, if the event contains references."""
    if media_type not in _IMAGE_MEDIA_TYPES or not isinstance(references, list) or not references:
        return {}
    sizes = [each.get("size") for each in references if isinstance(each, dict)]
    known = [size for size in sizes if type(size) is int and 0 <= size <= _MAX_SIZE]
    total = sum(known)
    is_whole = len(known) == len(references) and total <= _MAX_SIZE
    first = references[0] if isinstance(references[0], dict) else {}
    return {
        "total_size": total if is_whole else None,
        "config_digest": _get_text_field(first, "digest") or None,
    }


_PUSH_CHANGES = frozenset({RegistryChangeKind.CONTENT_PUSHED, RegistryChangeKind.MANIFEST_PUSHED})


def store_events(
    events: Iterable[RegistryEvent], *, session: Session, now: datetime
) -> Counter[str]:
    """Store events, and return the number of events for each outcome.

    An event is either stored, or skipped because its repository has no project.
    """
    outcomes: Counter[str] = Counter()
    # The fixed order prevents deadlocks between concurrent notifications.
    for event in sorted(events, key=lambda each: (each.repository, each.digest, each.tag)):
        repository_id = _get_or_create_repository_id(event, session, now)
        if repository_id is None:
            outcomes[UNKNOWN_PROJECT] += 1
            continue
        if store := _STORE_FUNCTIONS.get(event.change):
            store(event, repository_id, session)
        outcomes[STORED] += 1
    return outcomes


def _get_or_create_repository_id(
    event: RegistryEvent, session: Session, now: datetime
) -> int | None:
    """Return the ID of an event's repository, creating the repository if needed.

    Return None if the repository has no project.
    """
    project = find_repository_project(event.repository, session=session)
    if project is None:
        return None
    table = RegistryRepository
    insert = build_session_insert(table, session=session).values(
        project_id=project.id, name=event.repository, created_at=now, pushed_at=event.moment
    )
    # Repositories of a removed project are reused, unless the worker is still deleting them.
    is_waiting = belongs_to_deleted_project(event.repository, session=session)
    changes: dict[str, Any] = {"project_id": table.project_id if is_waiting else project.id}
    if event.change in _PUSH_CHANGES:
        is_newer = table.pushed_at < insert.excluded.pushed_at
        changes["pushed_at"] = case((is_newer, insert.excluded.pushed_at), else_=table.pushed_at)
    return session.scalar(
        insert.on_conflict_do_update(index_elements=[table.name], set_=changes).returning(table.id)
    )


def _store_push(event: RegistryEvent, repository_id: int, session: Session) -> None:
    _store_manifest(event, repository_id, session)
    if event.tag:
        _store_tag(event, repository_id, session)


def _store_manifest(event: RegistryEvent, repository_id: int, session: Session) -> None:
    table = RegistryManifest
    about = {
        "media_type": event.media_type,
        "total_size": event.total_size,
        "config_digest": event.config_digest,
    }
    insert = build_session_insert(table, session=session).values(
        repository_id=repository_id, digest=event.digest, **about
    )
    # The content for a given digest never changes, so stored values stay correct.
    known = {
        name: func.coalesce(getattr(insert.excluded, name), getattr(table, name)) for name in about
    }
    session.execute(
        insert.on_conflict_do_update(index_elements=[table.repository_id, table.digest], set_=known)
    )


def _store_tag(event: RegistryEvent, repository_id: int, session: Session) -> None:
    key = {"repository_id": repository_id, "name": event.tag}
    values = {"digest": event.digest, "pushed_at": event.moment}
    _store_change_if_latest(RegistryTag, key, values, RegistryTag.pushed_at, session)


def _store_tag_removal(event: RegistryEvent, repository_id: int, session: Session) -> None:
    key = {"repository_id": repository_id, "name": event.tag}
    values = {"removed_at": event.moment}
    _store_change_if_latest(RegistryTag, key, values, RegistryTag.removed_at, session)


def _store_deletion(event: RegistryEvent, repository_id: int, session: Session) -> None:
    """Store the deletion of a manifest.

    The deletion of a layer has no effect.
    """
    key = {"repository_id": repository_id, "digest": event.digest}
    values = {"deleted_at": event.moment}
    _store_change_if_latest(RegistryManifest, key, values, RegistryManifest.deleted_at, session)


def _store_change_if_latest(
    table: type[RegistryTag | RegistryManifest],
    key: Mapping[str, Any],
    values: Mapping[str, Any],
    moment: InstrumentedAttribute[datetime | None],
    session: Session,
) -> None:
    """Store values in the row with the given key.

    The row is not changed if it has a later time of the same kind.
    """
    insert = build_session_insert(table, session=session).values(**key, **values)
    session.execute(
        insert.on_conflict_do_update(
            index_elements=list(key),
            set_=values,
            where=or_(moment.is_(None), moment < values[moment.key]),
        )
    )


def _store_repository_removal(event: RegistryEvent, repository_id: int, session: Session) -> None:
    table = RegistryRepository
    session.execute(
        build_bulk_update(table)
        .where(
            table.id == repository_id,
            or_(table.removed_at.is_(None), table.removed_at < event.moment),
        )
        .values(removed_at=event.moment)
    )


_STORE_FUNCTIONS = {
    RegistryChangeKind.MANIFEST_PUSHED: _store_push,
    RegistryChangeKind.MANIFEST_DELETED: _store_deletion,
    RegistryChangeKind.TAG_REMOVED: _store_tag_removal,
    RegistryChangeKind.REPOSITORY_REMOVED: _store_repository_removal,
}
