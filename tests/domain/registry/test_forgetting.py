"""Pruning of registry data, and data that is kept."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from domain.core.keyring import Keyring
from domain.housekeeping.pruning import Retention, prune_expired_rows
from domain.registry.notifications import RegistryChangeKind, RegistryEvent, store_events
from domain.registry.repositories import list_all_tags, list_repositories
from domain.registry.signing_keys import get_signer, list_keys, rotate_signing_key
from models import Project, RegistryManifest, RegistryRepository, RegistryTag
from tests.support.accounts.people import now
from tests.support.database.projects import store_project

KEYRING = Keyring("a key of these tests")
NAME = "acme/shop"


@pytest.fixture(autouse=True)
def project(session: Session) -> None:
    store_project(session)


def event(
    change: RegistryChangeKind, days_ago: float, digest: str = "", tag: str = ""
) -> RegistryEvent:
    moment = now() - timedelta(days=days_ago)
    return RegistryEvent(change=change, repository=NAME, moment=moment, digest=digest, tag=tag)


def pushed(days_ago: float, digest: str, tag: str) -> RegistryEvent:
    return event(RegistryChangeKind.MANIFEST_PUSHED, days_ago, digest, tag)


def counts(session: Session) -> tuple[int, ...]:
    tables = (RegistryRepository, RegistryTag, RegistryManifest)
    return tuple(session.scalar(select(func.count()).select_from(each)) or 0 for each in tables)


def tags(session: Session) -> set[str]:
    found, _ = list_repositories(
        session.scalars(select(Project.id)).all(), offset=0, limit=10, session=session
    )
    return {tag.name for each in found for tag in list_all_tags(each, session=session)}


def run(session: Session, at: datetime | None = None) -> None:
    retention = Retention(keep_deliveries=10, keep_for=timedelta(days=1))
    prune_expired_rows(retention, session=session, now=at or now(), commit_batch=session.commit)


@pytest.mark.long
def test_old_events_are_pruned_without_changing_tags(session: Session) -> None:
    store_events(
        [
            pushed(90, "a", "old"),
            pushed(89, "b", "kept"),
            pushed(88, "c", "recent"),
            pushed(87, "d", "untagged"),
            event(RegistryChangeKind.MANIFEST_DELETED, 60, "a"),
            event(RegistryChangeKind.MANIFEST_DELETED, 10, "c"),
            event(RegistryChangeKind.TAG_REMOVED, 60, tag="untagged"),
            event(RegistryChangeKind.TAG_REMOVED, 60, tag="never pushed"),
            event(RegistryChangeKind.MANIFEST_DELETED, 60, "layer"),
            # The image was pushed again after its deletion.
            pushed(50, "a", "again"),
        ],
        session=session,
        now=now(),
    )
    session.commit()
    assert tags(session) == {"kept", "again"}
    run(session)
    assert tags(session) == {"kept", "again"}
    # The deletion of "a" is kept while a tag refers to it.
    assert counts(session) == (1, 3, 4)
    run(session, now() + timedelta(days=40))
    assert tags(session) == {"kept", "again"}
    assert counts(session) == (1, 2, 3)


@pytest.mark.long
def test_a_removed_repository_is_pruned_with_its_events(session: Session) -> None:
    store_events(
        [
            pushed(90, "a", "v1"),
            pushed(60, "b", "v2"),
            event(RegistryChangeKind.REPOSITORY_REMOVED, 59),
        ],
        session=session,
        now=now(),
    )
    session.commit()
    assert tags(session) == set()
    run(session, now() - timedelta(days=31))
    assert counts(session) == (1, 2, 2)
    run(session)
    assert counts(session) == (0, 0, 0)


@pytest.mark.long
def test_former_keys_are_kept_for_a_day(session: Session) -> None:
    first = get_signer(session=session, keyring=KEYRING, now=now() - timedelta(days=9))
    second = rotate_signing_key(
        timedelta(hours=1), session=session, keyring=KEYRING, now=now() - timedelta(hours=24)
    )
    rotate_signing_key(timedelta(hours=1), session=session, keyring=KEYRING, now=now())
    session.commit()

    def states() -> list[str]:
        found = list_keys(session=session, keyring=KEYRING, now=now())
        return [each.state.name for each in found]

    run(session)
    assert states() == ["WAITING", "SIGNING", "FORMER"]
    run(session, now() + timedelta(minutes=61))
    assert states() == ["WAITING", "SIGNING"]
    assert get_signer(session=session, keyring=KEYRING, now=now()).kid == second != first.kid


def test_a_key_of_a_lost_secret_is_skipped(session: Session) -> None:
    lost = Keyring("a key that is gone")
    first = get_signer(session=session, keyring=lost, now=now() - timedelta(days=1))
    session.commit()
    second = get_signer(session=session, keyring=KEYRING, now=now())
    assert second.kid != first.kid
    both = Keyring("another key", "a key of these tests")
    assert get_signer(session=session, keyring=both, now=now()).kid == second.kid
