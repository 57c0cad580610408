"""The container registry: repositories and tags, token keys, and pending removals.

Events may be repeated and arrive in any order. Each row keeps the latest time of each kind
according to the registry's clock, and the newest event wins. A tag exists if it was pushed after
its last removal.
"""

from datetime import datetime

from sqlalchemy import JSON, BigInteger, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import BaseWithId, build_cascading_foreign_key


class RegistryKey(BaseWithId):
    """A key pair that signs tokens for the registry, with its certificate."""

    __tablename__ = "registry_keys"

    #: Key ID in libtrust's format: twelve groups of four characters.
    kid: Mapped[str] = mapped_column(String(64), unique=True)
    #: Self-signed certificate in PEM format.
    certificate: Mapped[str] = mapped_column(Text)
    #: Encrypted private JWK.
    private_ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: Time at which the key starts to sign. Until then, operators can install its certificate in
    #: registries.
    signs_from: Mapped[datetime]


class RegistryRepository(BaseWithId):
    """An image repository of a project."""

    __tablename__ = "registry_repositories"

    project_id: Mapped[int] = build_cascading_foreign_key("projects")
    #: Full name in the registry, in lowercase, such as `acme/shop/worker`.
    name: Mapped[str] = mapped_column(String(255), unique=True)
    created_at: Mapped[datetime]
    #: Time of the last push to the repository.
    pushed_at: Mapped[datetime]
    #: Time of the last removal, which covers all earlier pushes. None if there was none.
    removed_at: Mapped[datetime | None]

    __table_args__ = (Index(None, "project_id", "id"),)


class RegistryManifest(BaseWithId):
    """A manifest in a repository. The row is kept for a while after the deletion."""

    __tablename__ = "registry_manifests"

    repository_id: Mapped[int] = build_cascading_foreign_key("registry_repositories")
    digest: Mapped[str] = mapped_column(String(255))
    media_type: Mapped[str | None] = mapped_column(String(255))
    #: Total size of the configuration and the layers in bytes. None if the registry does not report
    #: it.
    total_size: Mapped[int | None] = mapped_column(BigInteger)
    #: Digest of the image's configuration. None for an index, or if the registry does not report
    #: it.
    config_digest: Mapped[str | None] = mapped_column(String(255))
    #: Time of the last deletion by digest. None if there was none.
    deleted_at: Mapped[datetime | None] = mapped_column(index=True)

    __table_args__ = (UniqueConstraint(repository_id, digest),)


class RegistryTag(BaseWithId):
    """A tag in a repository. The row is kept for a while after the removal."""

    __tablename__ = "registry_tags"

    repository_id: Mapped[int] = build_cascading_foreign_key("registry_repositories")
    name: Mapped[str] = mapped_column(String(128))
    #: Digest of the last pushed manifest. None if only the tag's removal is known.
    digest: Mapped[str | None] = mapped_column(String(255))
    #: Time of the last push. None if only the tag's removal is known.
    pushed_at: Mapped[datetime | None]
    #: Time of the last removal. None if there was none.
    removed_at: Mapped[datetime | None] = mapped_column(index=True)

    __table_args__ = (UniqueConstraint(repository_id, name),)


class RegistryRemoval(BaseWithId):
    """Tags, or a whole repository, that the worker has to delete from the registry."""

    __tablename__ = "registry_removals"

    repository_id: Mapped[int] = build_cascading_foreign_key("registry_repositories", index=True)
    #: Rule that selects the tags. None for the whole repository.
    rule: Mapped[dict[str, str | int] | None] = mapped_column(JSON)
    requested_at: Mapped[datetime]
    #: Time of the next attempt, and the number of failures.
    due_at: Mapped[datetime] = mapped_column(index=True)
    failures: Mapped[int] = mapped_column(default=0)
    #: Reason for the last failure.
    failure: Mapped[str | None] = mapped_column(String(255))
