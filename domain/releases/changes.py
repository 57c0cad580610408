"""Data types for entries of the release schedule.

An entry describes the release in which an interface changes, the affected calls, and the effect.
There are few kinds of changes, so a new entry usually needs no code. Code is needed only if the
service itself provides the interface, because it must then implement both behaviors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from http import HTTPStatus

from domain.core.labeled_enums import LabeledEnum
from domain.releases.conditions import Condition
from domain.releases.version import Release, parse_release


class Interface(LabeledEnum):
    """The kind of interface that a change affects."""

    REST = "rest", "REST API"
    GRAPHQL = "graphql", "GraphQL API"
    CI = "ci", "CI/CD"
    SETTINGS = "settings", "Settings"
    PAGES = "pages", "Pages"
    OAUTH = "oauth", "OAuth and OpenID Connect"
    AUDIT = "audit", "Audit events"
    TLS = "tls", "TLS"


class ReleaseChangeKind(StrEnum):
    """The kind of change to an interface."""

    #: Change that makes calls of the operation fail with `status`.
    OPERATION_GONE = "operation_gone"
    #: Change that makes requests with the parameter fail with `status`.
    PARAMETER_REFUSED = "parameter_refused"
    #: Change that removes the field from responses, and rejects requests that set the field.
    FIELD_GONE = "field_gone"
    #: Change in the meaning of an unchanged request.
    DEFAULT_CHANGED = "default_changed"
    #: Change that rejects or truncates values beyond a limit.
    LIMIT_APPLIED = "limit_applied"

    @property
    def label(self) -> str:
        """The display name of the kind of change."""
        return self.replace("_", " ").capitalize()


class Certainty(StrEnum):
    """The certainty that a change affects the caller."""

    #: Certainty that the result of the call changes.
    SURE = "sure"
    #: Effect that depends on how the caller uses the response, or on how often it calls.
    POSSIBLE = "possible"


@dataclass(frozen=True, kw_only=True)
class CallPattern:
    """A pattern for HTTP calls that a change affects.

    In `path`, `:name` stands for one segment, which may contain encoded slashes, and `*` stands for
    the rest of the path.
    """

    path: str
    #: HTTP methods. Empty for all methods.
    methods: tuple[str, ...] = ()
    #: Condition on the parameters. None for all calls.
    when: Condition | None = None
    #: Fields of the response that change: dotted paths, with `[]` for the items of a list.
    fields: tuple[str, ...] = ()
    #: Strings that exclude the paths in which they occur.
    unless: tuple[str, ...] = ()
    #: Request attributes that are rejected because the field was removed.
    attributes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the call in the format used in the documentation."""
        methods = "|".join(self.methods)
        conditions = [str(self.when)] if self.when else []
        parts = [f"{methods} {self.path}".strip(), *conditions]
        names = dict.fromkeys([*self.fields, *self.attributes])
        if names:
            parts.append("field " + ", ".join(names).replace("[]", ""))
        return ": ".join(parts)


@dataclass(frozen=True, kw_only=True)
class NamePattern:
    """A pattern for names in a document, file or program that a change affects.

    `where` is the kind of name, such as `GraphQL field`, `GraphQL argument` or `CI variable`.
    """

    where: "ApiNameKind"
    names: tuple[str, ...]
    #: Types that have these fields. Empty for all types.
    types: tuple[str, ...] = ()
    #: Values that the name replaces, such as `PAUSED` of `CiRunnerStatus`.
    values: tuple[str, ...] = ()
    #: Arguments that exclude a field. A field with one of these arguments is not affected.
    unless: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the names in the format used in the documentation."""
        owners = f"{'|'.join(self.types)}." if self.types else ""
        values = f" = {'|'.join(self.values)}" if self.values else ""
        unless = f" without {' or '.join(self.unless)}" if self.unless else ""
        return f"{self.where} {owners}{', '.join(self.names)}{values}{unless}"


class ApiNameKind(StrEnum):
    """The kind of name that a pattern matches. The values are terms of the documentation."""

    GRAPHQL_FIELD = "GraphQL field"
    GRAPHQL_ARGUMENT = "GraphQL argument"
    GRAPHQL_VALUE = "GraphQL value"
    GRAPHQL_ENDPOINT = "GraphQL endpoint"
    CI_VARIABLE = "CI variable"
    CI_KEYWORD = "CI keyword"
    SETTING = "setting"
    SCOPE = "token scope"
    EVENT = "audit event"
    PROTOCOL = "protocol"


ChangePattern = CallPattern | NamePattern


@dataclass(frozen=True, kw_only=True, eq=False)
class Change:
    """A change to an interface in a release."""

    #: ID of the change in the URL of its web page. The ID never changes.
    id: str
    #: Release in which the change takes effect, such as 17.0.
    release: str
    interface: Interface
    kind: ReleaseChangeKind
    title: str
    matches: tuple[ChangePattern, ...]
    #: Behavior as of this release.
    after: str
    #: Replacement for the affected interface.
    replacement: str
    #: True if this service provides the interface, and therefore both behaviors.
    hosted: bool = False
    #: Status code of a rejected request.
    status: int = 400
    #: Releases in which the change was announced and in which support ended. None if they are not
    #: specified.
    announced: str | None = None
    end_of_support: str | None = None
    #: Removed request attributes, each with the attributes that it sets in earlier releases.
    renamed: Mapping[str, tuple[str, ...]] | None = None
    #: True if the change is a security rule, a limit or an expiry, which no request header can
    #: relax.
    is_strict: bool = False
    #: True if this service also applies the change in earlier releases.
    is_always_applied: bool = False

    @cached_property
    def effective_release(self) -> Release:
        """The release in which the change takes effect."""
        return parse_release(self.release)

    def applies_in(self, release: Release) -> bool:
        """Return whether a release has the new behavior."""
        return release >= self.effective_release

    @property
    def call_patterns(self) -> tuple[CallPattern, ...]:
        """The patterns for the affected HTTP calls."""
        return tuple(each for each in self.matches if isinstance(each, CallPattern))

    @property
    def is_rate_limit(self) -> bool:
        """True if the change limits the rate of calls.

        The result of a single call does not change.
        """
        return (
            self.kind is ReleaseChangeKind.LIMIT_APPLIED
            and self.status == HTTPStatus.TOO_MANY_REQUESTS
        )

    @property
    def depends_on_values(self) -> bool:
        """True if the change affects only calls with certain parameters."""
        calls = self.call_patterns
        return bool(calls) and all(each.when is not None for each in calls)

    @property
    def message(self) -> str:
        """The error message for a request that is rejected because of the change."""
        return f"{self.title} (release {self.release}). {self.replacement}"
