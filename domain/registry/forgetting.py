"""What pruning removes: tombstones that no late event needs any more, and former keys."""

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, exists, or_
from sqlalchemy.orm import aliased

from domain.registry.signing_keys import FORMER_KEYS_STAY
from models import RegistryKey, RegistryManifest, RegistryRepository, RegistryTag

#: How late an event of a push may come without bringing back what was removed.
_TOMBSTONES_STAY = timedelta(days=30)


def is_forgotten_tag(now: datetime) -> ColumnElement[bool]:
    """Return the condition of tags that ended long ago, by themselves or with what they name."""
    tag, end = RegistryTag, now - _TOMBSTONES_STAY
    its_manifest = exists().where(
        RegistryManifest.repository_id == tag.repository_id,
        RegistryManifest.digest == tag.digest,
        RegistryManifest.deleted_at < end,
        RegistryManifest.deleted_at >= tag.pushed_at,
    )
    its_repository = exists().where(
        RegistryRepository.id == tag.repository_id,
        RegistryRepository.removed_at < end,
        RegistryRepository.removed_at >= tag.pushed_at,
    )
    itself = and_(
        tag.removed_at < end, or_(tag.pushed_at.is_(None), tag.removed_at >= tag.pushed_at)
    )
    return or_(itself, its_manifest, its_repository)


def is_forgotten_manifest(now: datetime) -> ColumnElement[bool]:
    """Return the condition of manifests deleted long ago; while tags name them they stay."""
    named = exists().where(
        RegistryTag.repository_id == RegistryManifest.repository_id,
        RegistryTag.digest == RegistryManifest.digest,
    )
    return and_(RegistryManifest.deleted_at < now - _TOMBSTONES_STAY, ~named)


def is_forgotten_repository(now: datetime) -> ColumnElement[bool]:
    """Return the condition of repositories that were removed long ago."""
    repository = RegistryRepository
    return and_(
        repository.removed_at < now - _TOMBSTONES_STAY,
        repository.removed_at >= repository.pushed_at,
    )


def is_former_key(now: datetime) -> ColumnElement[bool]:
    """Return the condition of keys that a newer one followed so long ago that no token is left."""
    newer = aliased(RegistryKey)
    return exists().where(
        newer.signs_from > RegistryKey.signs_from, newer.signs_from < now - FORMER_KEYS_STAY
    )
