"""The container registry: what its notifications say, keys for its tokens, and removals to do.

Events come repeated and in any order, so that a row keeps the latest time of each kind by the
registry's own clock, and what is newest wins: a tag is there if it was pushed after it was removed.
"""

from datetime import datetime

from sqlalchemy import JSON, BigInteger, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Numbered, belongs_to


class RegistryKey(Numbered):
    """A key pair that signs tokens for the registry, with its certificate."""

    __tablename__ = "registry_keys"

    #: As libtrust writes it: twelve groups of four characters.
    kid: Mapped[str] = mapped_column(String(64), unique=True)
    #: PEM, self-signed.
    certificate: Mapped[str] = mapped_column(Text)
    #: The private JWK, encrypted.
    private_ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: When it begins to sign; until then registries can learn its certificate.
    signs_from: Mapped[datetime]


class RegistryRepository(Numbered):
    """An image repository of a project."""

    __tablename__ = "registry_repositories"

    project_id: Mapped[int] = belongs_to("projects")
    #: The whole name in the registry, in lower case: `acme/shop/worker`.
    name: Mapped[str] = mapped_column(String(255), unique=True)
    created_at: Mapped[datetime]
    #: The last push of anything into it.
    pushed_at: Mapped[datetime]
    #: Everything that was pushed until then is removed; None if it was never removed.
    removed_at: Mapped[datetime | None]

    __table_args__ = (Index(None, "project_id", "id"),)


class RegistryManifest(Numbered):
    """A manifest of a repository, by its digest; kept for a while after its deletion."""

    __tablename__ = "registry_manifests"

    repository_id: Mapped[int] = belongs_to("registry_repositories")
    digest: Mapped[str] = mapped_column(String(255))
    media_type: Mapped[str | None] = mapped_column(String(255))
    #: Bytes of the configuration and the layers together; None if the registry does not say.
    total_size: Mapped[int | None] = mapped_column(BigInteger)
    #: Digest of the image's configuration; None of an index, or if the registry does not say.
    config_digest: Mapped[str | None] = mapped_column(String(255))
    #: The last deletion by its digest, None if there was none.
    deleted_at: Mapped[datetime | None] = mapped_column(index=True)

    __table_args__ = (UniqueConstraint(repository_id, digest),)


class RegistryTag(Numbered):
    """A tag of a repository; kept for a while after its removal."""

    __tablename__ = "registry_tags"

    repository_id: Mapped[int] = belongs_to("registry_repositories")
    name: Mapped[str] = mapped_column(String(128))
    #: Of the manifest that was pushed last; None if only its removal is known.
    digest: Mapped[str | None] = mapped_column(String(255))
    #: The last push, None if only its removal is known.
    pushed_at: Mapped[datetime | None]
    #: The last removal, None if there was none.
    removed_at: Mapped[datetime | None] = mapped_column(index=True)

    __table_args__ = (UniqueConstraint(repository_id, name),)


class RegistryRemoval(Numbered):
    """Tags, or a whole repository, that the worker has to delete in the registry."""

    __tablename__ = "registry_removals"

    repository_id: Mapped[int] = belongs_to("registry_repositories", index=True)
    #: Which tags; None for the whole repository.
    rule: Mapped[dict[str, str | int] | None] = mapped_column(JSON)
    requested_at: Mapped[datetime]
    #: When it is tried next, and how often it failed.
    due_at: Mapped[datetime] = mapped_column(index=True)
    failures: Mapped[int] = mapped_column(default=0)
    #: Why it failed last.
    failure: Mapped[str | None] = mapped_column(String(255))
