"""Stores what the registry's notifications say.

Events come repeated, late and in any order. Each keeps the latest time of its kind in its row, so
that the result is the same in whatever order and however often they come: a tag is there if it was
pushed after it was last removed, after its manifest was last deleted and its repository removed.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import case, func, or_, update
from sqlalchemy.orm import Session

from domain.database.upsert import insert_into
from domain.registry.names import find_project, is_of_deleted_project
from domain.registry.notifications import Change, RegistryEvent
from models import RegistryManifest, RegistryRepository, RegistryTag

#: What became of an event, for metrics.
STORED, UNKNOWN_PROJECT = "stored", "unknown_project"
_PUSHES = frozenset({Change.CONTENT_PUSHED, Change.MANIFEST_PUSHED})


def record_events(
    events: Iterable[RegistryEvent], *, session: Session, now: datetime
) -> Counter[str]:
    """Store events; return how many were stored, and how many belong to no project."""
    outcomes: Counter[str] = Counter()
    # In one order, so that two notifications at once do not deadlock.
    for event in sorted(events, key=lambda each: (each.repository, each.digest, each.tag)):
        repository_id = _repository_id(event, session, now)
        if repository_id is None:
            outcomes[UNKNOWN_PROJECT] += 1
            continue
        if store := _STORE.get(event.change):
            store(event, repository_id, session)
        outcomes[STORED] += 1
    return outcomes


def _repository_id(event: RegistryEvent, session: Session, now: datetime) -> int | None:
    """Return the row of an event's repository, made if needed; None without a project."""
    project = find_project(event.repository, session=session)
    if project is None:
        return None
    table = RegistryRepository
    insert = insert_into(table, session=session).values(
        project_id=project.id, name=event.repository, created_at=now, pushed_at=event.moment
    )
    # What is left of a removed project is taken over, but not what the worker still deletes.
    is_waiting = is_of_deleted_project(event.repository, session=session)
    changes: dict[str, Any] = {"project_id": table.project_id if is_waiting else project.id}
    if event.change in _PUSHES:
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
    insert = insert_into(table, session=session).values(
        repository_id=repository_id, digest=event.digest, **about
    )
    # A digest has one content: what is known of it stays.
    known = {
        name: func.coalesce(getattr(insert.excluded, name), getattr(table, name)) for name in about
    }
    session.execute(
        insert.on_conflict_do_update(index_elements=[table.repository_id, table.digest], set_=known)
    )


def _store_tag(event: RegistryEvent, repository_id: int, session: Session) -> None:
    table = RegistryTag
    insert = insert_into(table, session=session).values(
        repository_id=repository_id, name=event.tag, digest=event.digest, pushed_at=event.moment
    )
    session.execute(
        insert.on_conflict_do_update(
            index_elements=[table.repository_id, table.name],
            set_={"digest": event.digest, "pushed_at": event.moment},
            where=or_(table.pushed_at.is_(None), table.pushed_at < event.moment),
        )
    )


def _store_tag_removal(event: RegistryEvent, repository_id: int, session: Session) -> None:
    table = RegistryTag
    insert = insert_into(table, session=session).values(
        repository_id=repository_id, name=event.tag, removed_at=event.moment
    )
    session.execute(
        insert.on_conflict_do_update(
            index_elements=[table.repository_id, table.name],
            set_={"removed_at": event.moment},
            where=or_(table.removed_at.is_(None), table.removed_at < event.moment),
        )
    )


def _store_deletion(event: RegistryEvent, repository_id: int, session: Session) -> None:
    """Store the deletion of a digest; of a layer nothing comes of it."""
    table = RegistryManifest
    insert = insert_into(table, session=session).values(
        repository_id=repository_id, digest=event.digest, deleted_at=event.moment
    )
    session.execute(
        insert.on_conflict_do_update(
            index_elements=[table.repository_id, table.digest],
            set_={"deleted_at": event.moment},
            where=or_(table.deleted_at.is_(None), table.deleted_at < event.moment),
        )
    )


def _store_repository_removal(event: RegistryEvent, repository_id: int, session: Session) -> None:
    table = RegistryRepository
    session.execute(
        update(table)
        .where(
            table.id == repository_id,
            or_(table.removed_at.is_(None), table.removed_at < event.moment),
        )
        .values(removed_at=event.moment)
        .execution_options(synchronize_session=False)
    )


_STORE = {
    Change.MANIFEST_PUSHED: _store_push,
    Change.MANIFEST_DELETED: _store_deletion,
    Change.TAG_REMOVED: _store_tag_removal,
    Change.REPOSITORY_REMOVED: _store_repository_removal,
}
