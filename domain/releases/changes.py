"""What an entry of the release schedule is made of.

An entry says in which release an interface changes, which calls it concerns, and what happens to
them. The kinds are few: a new entry is data, and needs code only where the service hosts both
behaviours of an interface.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from http import HTTPStatus

from domain.core.labelled_enums import Labelled
from domain.releases.conditions import Condition
from domain.releases.version import Release, parse_release


class Interface(Labelled):
    """Kind of interface that a change concerns."""

    REST = "rest", "REST API"
    GRAPHQL = "graphql", "GraphQL API"
    CI = "ci", "CI/CD"
    SETTINGS = "settings", "Settings"
    PAGES = "pages", "Pages"
    OAUTH = "oauth", "OAuth and OpenID Connect"
    AUDIT = "audit", "Audit events"
    TLS = "tls", "TLS"


class Kind(StrEnum):
    """Kind of a change of an interface."""

    #: The operation is refused with `status`.
    OPERATION_GONE = "operation_gone"
    #: A request with the parameter is refused with `status`.
    PARAMETER_REFUSED = "parameter_refused"
    #: Responses have the field no more, and a request that sets it is refused.
    FIELD_GONE = "field_gone"
    #: Without any action, the same request means something else.
    DEFAULT_CHANGED = "default_changed"
    #: Values beyond a limit are refused, or cut.
    LIMIT_APPLIED = "limit_applied"

    @property
    def label(self) -> str:
        """Return its name for people."""
        return self.replace("_", " ").capitalize()


class Certainty(StrEnum):
    """Certainty that a change affects the caller."""

    #: The same call has another result.
    SURE = "sure"
    #: It depends on what the caller does with the response, or on how often it calls.
    POSSIBLE = "possible"


@dataclass(frozen=True, kw_only=True)
class Call:
    """Calls over HTTP that a change concerns.

    `path` is a pattern: `:name` is one segment, which holds encoded slashes, and `*` is the rest.
    """

    path: str
    #: Empty for all.
    methods: tuple[str, ...] = ()
    #: What the parameters have to be; None for all calls.
    when: Condition | None = None
    #: Fields of the response that change: dotted paths, with `[]` for the items of a list.
    fields: tuple[str, ...] = ()
    #: What a path that is meant does not contain.
    unless: tuple[str, ...] = ()
    #: Names of a request that are refused because the field of this name is gone.
    attributes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as the documents write it."""
        methods = "|".join(self.methods)
        conditions = [str(self.when)] if self.when else []
        parts = [f"{methods} {self.path}".strip(), *conditions]
        names = dict.fromkeys([*self.fields, *self.attributes])
        if names:
            parts.append("field " + ", ".join(names).replace("[]", ""))
        return ": ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Names:
    """Names in a document, file or program that a change concerns.

    `where` says what they are: `GraphQL field`, `GraphQL argument`, `CI variable`, ….
    """

    where: "Where"
    names: tuple[str, ...]
    #: Types whose fields these are, where the type is known; empty for all.
    types: tuple[str, ...] = ()
    #: Values in whose place the name stands, as `PAUSED` of `CiRunnerStatus`.
    values: tuple[str, ...] = ()
    #: Arguments of a field with which nothing changes for it.
    unless: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as the documents write it."""
        owners = f"{'|'.join(self.types)}." if self.types else ""
        values = f" = {'|'.join(self.values)}" if self.values else ""
        unless = f" without {' or '.join(self.unless)}" if self.unless else ""
        return f"{self.where} {owners}{', '.join(self.names)}{values}{unless}"


class Where(StrEnum):
    """What a name is."""

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


Match = Call | Names


@dataclass(frozen=True, kw_only=True, eq=False)
class Change:
    """A change of an interface in a release."""

    #: In the address of its page; it stays as it is.
    id: str
    #: The release that it takes effect in, such as 17.0.
    release: str
    interface: Interface
    kind: Kind
    title: str
    matches: tuple[Match, ...]
    #: What happens from the release on.
    after: str
    #: What to use instead.
    replacement: str
    #: Whether this service has the interface, so that both behaviours are real.
    hosted: bool = False
    #: Of a refused request.
    status: int = 400
    #: Releases; None where the specification does not state them.
    announced: str | None = None
    end_of_support: str | None = None
    #: Former names of request attributes, and the names that take their value before the release.
    renamed: Mapping[str, tuple[str, ...]] | None = None
    #: Whether this is a rule of security, a limit or an expiry: no header of a request loosens it.
    is_strict: bool = False
    #: Whether this service applies it in earlier releases as well.
    is_always_applied: bool = False

    @cached_property
    def removal(self) -> Release:
        """Return the release that it takes effect in."""
        return parse_release(self.release)

    def applies_in(self, release: Release) -> bool:
        """Return whether a release has the new behaviour."""
        return release >= self.removal

    @property
    def calls(self) -> tuple[Call, ...]:
        """Return the calls over HTTP that it concerns."""
        return tuple(each for each in self.matches if isinstance(each, Call))

    @property
    def is_rate_limit(self) -> bool:
        """Return whether it limits how often consumers call: a single call has the same result."""
        return self.kind is Kind.LIMIT_APPLIED and self.status == HTTPStatus.TOO_MANY_REQUESTS

    @property
    def is_decided_by_values(self) -> bool:
        """Return whether the parameters of a call tell whether the call has another result."""
        calls = self.calls
        return bool(calls) and all(each.when is not None for each in calls)

    @property
    def message(self) -> str:
        """Return what a refused request is told."""
        return f"{self.title} (release {self.release}). {self.replacement}"
