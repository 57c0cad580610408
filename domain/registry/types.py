"""API types for repositories, tags and signing keys of the container registry."""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field

from domain.core.types.base import (
    MAX_NUMBER,
    Body,
    GitLabQuery,
    Resource,
    Text,
    Time,
    WithoutEffect,
    build_choices_schema,
    get_column_values,
)
from domain.core.types.pagination import OffsetQuery
from domain.registry.removal import MAX_REGEX_LENGTH, RemovalRule, parse_age
from domain.registry.repositories import RepositoryView, TagView
from domain.registry.signing_keys import DEFAULT_NOTICE_PERIOD, MAX_NOTICE_PERIOD, KeyState


def _count_hours(length: timedelta) -> int:
    return int(length.total_seconds() // 3600)


#: A regular expression in RE2 syntax.
_Regex = Annotated[Text, Field(max_length=MAX_REGEX_LENGTH)]


class RepositoryListQuery(OffsetQuery, GitLabQuery):
    """Query parameters that add tags and tag counts to a list of repositories."""

    tags: bool = Field(default=False, description="True to include the tags of each repository.")
    tags_count: bool = Field(
        default=False, description="True to include the number of tags of each repository."
    )
    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class RepositoryQuery(GitLabQuery):
    """Query parameters that add the tags and the tag count to a repository."""

    tags: bool = Field(default=False, description="True to include the tags of the repository.")
    tags_count: bool = Field(
        default=False, description="True to include the number of tags of the repository."
    )
    size: WithoutEffect = ""


class TagListQuery(OffsetQuery, GitLabQuery):
    """Query parameters for a list of tags, ordered by name.

    As of release 18.0, only the `Link` header contains the position of the next page.
    """

    cursor: str = Field(
        default="",
        description="Position in a list with keyset pagination, taken from the link to the next "
        "page.",
    )
    order_by: Literal["name"] = "name"
    sort: Literal["asc"] = "asc"


class TagRemovalBody(Body):
    """A rule that selects the tags to delete."""

    name_regex_delete: _Regex = Field(
        default="",
        description="RE2 regular expression that matches the full names of the tags to delete.",
    )
    name_regex: _Regex = Field(default="", description="Former name of `name_regex_delete`.")
    name_regex_keep: _Regex = Field(
        default="",
        description="RE2 regular expression that matches the full names of the tags to keep.",
    )
    keep_n: int = Field(
        default=0,
        ge=0,
        le=MAX_NUMBER,
        description="Number of matching tags to keep, starting with the newest.",
    )
    older_than: Text = Field(
        default="",
        description="Minimum age of the tags to delete, such as 12h, 7d, 2w or 1month.",
    )

    @property
    def rule(self) -> RemovalRule:
        """The removal rule in the body.

        Raise InvalidError for a malformed age.
        """
        return RemovalRule(
            delete=self.name_regex_delete or self.name_regex,
            keep=self.name_regex_keep,
            keep_newest=self.keep_n,
            older_than=parse_age(self.older_than) if self.older_than else timedelta(0),
        )


class RegistryTagSummary(Resource):
    """A tag as shown in lists, with its path and image reference."""

    name: str
    path: str
    #: Image reference, as used by `docker pull`.
    location: str

    @classmethod
    def from_view(cls, view: TagView, host: str | None) -> Self:
        """Return the API representation of a tag."""
        return cls(**get_column_values(view, cls), location=_build_location(view.path, host))


class RegistryTag(RegistryTagSummary):
    """A tag, with the digest, size and push time of its image."""

    revision: str | None
    short_revision: str | None
    digest: str
    #: Time of the push.
    created_at: Time
    total_size: int | None


class NewRegistryKey(Body):
    """Options for a new signing key that replaces the current key."""

    notice_hours: int = Field(
        default=_count_hours(DEFAULT_NOTICE_PERIOD),
        ge=0,
        le=_count_hours(MAX_NOTICE_PERIOD),
        description="Hours before the key starts signing, so that you can copy its certificate to "
        "every registry.",
    )
    forget_former: bool = Field(
        default=False, description="True to withdraw all previous keys immediately."
    )


class RegistryKey(Resource):
    """A key that signs tokens of the registry."""

    kid: str
    state: Annotated[str, build_choices_schema(*(each.value for each in KeyState))]
    created_at: Time
    signs_from: Time


class CreatedRegistryKey(Resource):
    """A new key, and the keys of all certificates that registries must trust."""

    kid: str
    keys: list[RegistryKey]


class RegistryRepository(Resource):
    """An image repository of a project in the container registry."""

    id: int
    #: Name below the project's path. Empty if the repository has the project's path.
    name: str
    path: str
    project_id: int
    location: str
    created_at: Time
    cleanup_policy_started_at: None
    status: Literal["delete_scheduled"] | None
    tags_count: int | None = Field(default=None, exclude_if=lambda value: value is None)
    tags: list[RegistryTagSummary] | None = Field(
        default=None, exclude_if=lambda value: value is None
    )

    @classmethod
    def from_view(
        cls,
        view: RepositoryView,
        host: str | None,
        *,
        tags_count: int | None,
        tags: list[RegistryTagSummary] | None,
    ) -> "RegistryRepository":
        """Return the API representation of a repository, with optional tags and tag count."""
        return cls(
            **get_column_values(view, cls) | {"tags_count": tags_count},
            location=_build_location(view.path, host),
            cleanup_policy_started_at=None,
            status="delete_scheduled" if view.is_going else None,
            tags=tags,
        )


def _build_location(path: str, host: str | None) -> str:
    return f"{host}/{path}" if host else path
