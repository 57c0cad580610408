"""The mark of an operation of the API: what it asks for, takes and returns.

    @environments.post("/projects/<path:reference>/environments")
    @operation("environments.create", body=EnvironmentBody, returns=Environment, status=201)
    def create(project: ProjectView, body: EnvironmentBody) -> Environment:

The mark checks token, scope and role by the table (`web/api/permissions.py`), reads the parameters
by their schema, and writes what the view returns by another one. A view gets what it names among
its arguments: `bearer`, `viewer`, `actor`, `project`, `group`, `namespace` (with `role` and
`holder`, the project or group), `query`,
`body`, and the variables of its URL.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from hashlib import blake2b
from http import HTTPStatus
from inspect import signature
from types import UnionType
from typing import Any, Generic, NamedTuple, TypeVar, cast

import orjson
from flask import Response, request
from pydantic import BaseModel, TypeAdapter

from domain.accounts.abilities import Ability
from domain.accounts.roles import Role
from domain.api_usage.schedule_names import SCHEDULE_NAMES
from domain.audit.events import Actor
from domain.database.paging import Listed, Page
from domain.projects.access import (
    check_feature,
    check_takes_changes,
    get_group,
    get_group_for,
    get_project,
    get_project_for,
)
from domain.projects.features import feature_of
from domain.projects.references import group_path, project_path
from domain.projects.views import GroupView, ProjectView, Viewer
from web.access.api_limits import Family, count_request, count_search
from web.api.callers import get_caller, get_ready_caller
from web.api.idempotency import once
from web.api.ignored_parameters import name_ignored
from web.api.page_headers import cursor_headers, offset_headers
from web.api.parameters import all_parameters, given_parameters
from web.api.permissions import PERMISSIONS, Permission, Place
from web.api.schemas.base import (
    Body,
    Done,
    GitLabQuery,
    KeysetQuery,
    OffsetQuery,
    PagedQuery,
    Query,
    Resource,
    SecretResource,
)
from web.api.schemas.reading import (
    read_body,
    read_query,
    unknown_names,
    with_plain_numbers,
)
from web.api.sudo import (
    NO_PARAMETERS,
    named_anywhere,
    named_beside_the_body,
)
from web.extensions import db
from web.http.encoded_references import decoded_reference
from web.http.endpoints import Guard, Mark
from web.http.json_responses import written_json_response
from web.releases.gate import Gate, open_gate
from web.releases.traffic import record_operation, record_ready_operation
from web.services import now

Item = TypeVar("Item", bound=BaseModel)
#: A resource, a union of some, or `true` where clients wait for that.
Returns = type[Resource] | type[Done] | UnionType
_ETAG_BYTES = 16
_READING = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, kw_only=True)
class Found(Generic[Item]):
    """A page of a list: with `total` of one with numbered pages, else with the next cursor."""

    items: Sequence[Item]
    total: int | None = None
    next_cursor: str | None = None

    @classmethod
    def of(cls, listed: Listed[Any], present: Callable[[Any], Item]) -> "Found[Item]":
        """Present a part of a list that has both kinds of pages (`PagedQuery`)."""
        return cls(
            items=[present(each) for each in listed.items],
            total=listed.total,
            next_cursor=listed.next_cursor,
        )

    @classmethod
    def of_page(cls, page: Page[Any], present: Callable[[Any], Item]) -> "Found[Item]":
        """Present a page of a list that a cursor leads through (`KeysetQuery`)."""
        following = page.next_before
        return cls(
            items=[present(each) for each in page.items],
            next_cursor=None if following is None else str(following),
        )


class Arguments(NamedTuple):
    """What an operation takes and returns."""

    name: str
    permission: Permission
    query: type[Query] | None
    body: type[Body] | None
    #: None for no content, or for a response that the view makes itself.
    returns: Returns | None
    is_list: bool
    status: int
    #: The rate limit beside that of all requests.
    limit: Family | None
    #: Reads the parameters of a body.
    reader: Callable[[], dict[str, Any]] = all_parameters

    @property
    def is_repeatable(self) -> bool:
        """Whether a POST can be sent again with the same Idempotency-Key."""
        # Another reader leaves nothing that requests could be told apart by.
        return self.reader is all_parameters


@dataclass(frozen=True, kw_only=True)
class Operation(Mark):
    """The mark of a view of the API, with what its description needs."""

    arguments: Arguments

    # The guard makes a response of what the view returns.
    def __call__(self, view: Callable[..., Any]) -> Callable[..., Response]:  # type: ignore[override]
        """Mark a view, which returns a resource, `Found`, None or a response."""
        return cast("Callable[..., Response]", super().__call__(view))

    def reading(self, reader: Callable[[], dict[str, Any]]) -> "Operation":
        """Return this mark for a view whose body another function reads."""
        arguments = self.arguments._replace(reader=reader)
        return replace(self, guard=_guard(arguments), arguments=arguments)


def operation(
    name: str,
    *,
    query: type[Query] | None = None,
    body: type[Body] | None = None,
    returns: Returns | None = None,
    status: int = HTTPStatus.OK,
    limit: Family | None = None,
) -> Operation:
    """Return the mark of the operation with this name in the table of permissions.

    What it returns may be a union, such as what administrators see, or else what others do.

    A `query` with page numbers or cursors makes it a list: the view returns `Found`.
    """
    arguments = Arguments(
        name=name,
        permission=PERMISSIONS[name],
        query=query,
        body=body,
        returns=returns,
        is_list=query is not None and issubclass(query, OffsetQuery | KeysetQuery),
        status=status,
        limit=limit,
    )
    return Operation(access=arguments.permission.text, guard=_guard(arguments), arguments=arguments)


def ready_operation(name: str, *, returns: type[Resource]) -> Operation:
    """Return the mark of an operation that is asked thousands of times a second.

    The view takes the bearer alone and returns a dictionary, which is written as it is; `returns`
    describes it. It takes no parameters, and ignores those of a request.
    """
    permission = PERMISSIONS[name]
    arguments = Arguments(
        name=name,
        permission=permission,
        query=None,
        body=None,
        returns=returns,
        is_list=False,
        status=HTTPStatus.OK,
        limit=None,
    )

    def guard(view: Callable[..., Any]) -> Callable[..., Any]:
        def guarded() -> Response:
            bearer = get_ready_caller(permission)
            record_ready_operation(bearer)
            content = orjson.dumps(view(bearer=bearer))
            response = written_json_response(content)
            _make_conditional(response, content)
            return response

        return guarded

    return Operation(access=permission.text, guard=guard, arguments=arguments)


def _guard(arguments: Arguments) -> Guard:
    def guard(view: Callable[..., Any]) -> Callable[..., Any]:
        named = frozenset(signature(view).parameters)
        known = _known_names(arguments)

        @wraps(view)
        def guarded(**variables: Any) -> Response:
            given = _admitted(arguments, variables)
            gate = open_gate(partial(_given, arguments))
            names = _read_parameters(arguments, given, gate)
            record_operation(given["bearer"], names, known, variables.get("kind", ""))

            def act() -> Response:
                returned = _none_of(given.get("query")) or view(
                    **{name: each for name, each in given.items() if name in named}
                )
                return _response(arguments, returned, given.get("query"), gate)

            return once(given["bearer"], act) if arguments.is_repeatable else act()

        return guarded

    return guard


def _admitted(arguments: Arguments, variables: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a request that may do this; raise the error of one that may not."""
    permission = arguments.permission
    # Only the operation itself can read a body that another reader is for.
    is_usual = arguments.reader is all_parameters
    bearer = get_caller(permission, named_anywhere() if is_usual else named_beside_the_body())
    if arguments.limit is not None:
        count_request(arguments.limit)
    viewer = Viewer(
        user_id=bearer.user_id if bearer else None,
        is_admin=bearer is not None and bearer.is_admin,
        today=now().date(),
    )
    actor = Actor(id=bearer.user_id, name=bearer.username) if bearer else None
    place = _place(permission, variables, viewer)
    for found in place.values():
        if isinstance(found, ProjectView):
            _check_project(found, arguments)
    return {**variables, "bearer": bearer, "viewer": viewer, "actor": actor, **place}


def _place(permission: Permission, variables: dict[str, Any], viewer: Viewer) -> Mapping[str, Any]:
    """Return the project or group of the URL, which the viewer sees and has the role in."""
    if permission.place is Place.INSTANCE:
        return {}
    reference = decoded_reference(variables.pop("reference"))
    if permission.place is Place.NAMESPACE:
        return _namespace(permission, variables["kind"], reference, viewer)
    if permission.place is Place.PROJECT:
        return {"project": _project(reference, viewer, permission.least, permission.ability)}
    return {"group": _group(reference, viewer, permission.least, permission.ability)}


def _namespace(
    permission: Permission, kind: str, reference: str, viewer: Viewer
) -> Mapping[str, Any]:
    found = (
        _project(reference, viewer, permission.least, permission.ability)
        if kind == "projects"
        else _group(reference, viewer, permission.least_in_group, permission.ability)
    )
    return {"holder": found, "namespace": found.namespace, "role": found.role}


def _check_project(project: ProjectView, arguments: Arguments) -> None:
    """Raise the error of a project that is archived, or has this part turned off."""
    feature = feature_of(arguments.name.partition(".")[0])
    if feature is not None:
        check_feature(project, feature)
    if request.method not in _READING and not arguments.permission.in_archived:
        check_takes_changes(project)


def _project(
    reference: str, viewer: Viewer, least: Role | None, ability: Ability | None
) -> ProjectView:
    session = db.session()
    path = project_path(reference, session=session)
    if least is None:
        return get_project(path, viewer, session=session)
    return get_project_for(path, viewer, at_least=least, ability=ability, session=session)


def _group(
    reference: str, viewer: Viewer, least: Role | None, ability: Ability | None
) -> GroupView:
    session = db.session()
    path = group_path(reference, session=session)
    if least is None:
        return get_group(path, viewer, session=session)
    return get_group_for(path, viewer, at_least=least, ability=ability, session=session)


def _given(arguments: Arguments) -> Mapping[str, Any]:
    """Return the parameters as they were given, with numbers as they will be read."""
    given = given_parameters()
    return given if arguments.query is None else with_plain_numbers(arguments.query, given)


def _read_parameters(
    arguments: Arguments, given: dict[str, Any], gate: Gate | None
) -> Collection[str]:
    """Add what the schemas make of a request's parameters, and return their names."""
    if arguments.body is not None:
        sent = gate.parameters() if gate else arguments.reader()
        given["body"] = read_body(arguments.body, sent)
        return sent.keys() - NO_PARAMETERS
    if arguments.query is None:
        return request.args.keys() - NO_PARAMETERS
    asked = {name: each for name, each in request.args.lists() if name not in NO_PARAMETERS}
    given["query"] = query = read_query(arguments.query, asked)
    if unknown := unknown_names(arguments.query, asked):
        name_ignored(unknown)
    if getattr(query, "search", ""):
        count_search()
    return asked.keys()


def _none_of(query: Query | None) -> Found[Any] | None:
    """Return the empty list where a query asks for what nothing here has."""
    if not (isinstance(query, GitLabQuery) and query.finds_nothing):
        return None
    has_numbers = isinstance(query, OffsetQuery) and query.pagination != "keyset"
    return Found(items=(), total=0 if has_numbers else None)


def _known_names(arguments: Arguments) -> frozenset[str]:
    """Return the names of parameters that records of calls may hold."""
    schemas = [each for each in (arguments.query, arguments.body) if each is not None]
    return SCHEDULE_NAMES.union(*(each.model_fields for each in schemas))


def _response(
    arguments: Arguments, returned: Any, query: Query | None, gate: Gate | None
) -> Response:
    if isinstance(returned, Response):
        return returned
    if returned is None:
        return Response(status=HTTPStatus.NO_CONTENT)
    items = returned.items if isinstance(returned, Found) else returned
    is_list = isinstance(returned, Found)
    writer = _writer(cast("Any", arguments.returns), is_list=is_list)
    content = writer.dump_json(items, exclude=gate.excluded(is_list=is_list) if gate else None)
    response = written_json_response(content, arguments.status)
    response.headers.update(_own_headers(returned, query))
    if request.method in _READING:
        _make_conditional(response, content)
    return response


@cache
def _writer(returns: Any, *, is_list: bool) -> TypeAdapter[Any]:
    return TypeAdapter(Sequence[returns] if is_list else returns)


def _own_headers(returned: Any, query: Query | None) -> Mapping[str, str]:
    if isinstance(returned, Found):
        return _page_headers(returned, query)
    return {"Cache-Control": "no-store"} if isinstance(returned, SecretResource) else {}


def _page_headers(found: Found[Any], query: Query | None) -> Mapping[str, str]:
    if isinstance(query, OffsetQuery) and found.total is not None:
        return offset_headers(query.page, query.size, total=found.total)
    # A list with both kinds of pages can have chosen this one without being asked for it.
    kind = {"pagination": "keyset"} if isinstance(query, PagedQuery) else {}
    return cursor_headers(found.next_cursor, **kind)


def _make_conditional(response: Response, content: bytes) -> None:
    """Give a response an ETag, and make it 304 for a client that has it (RFC 9110 section 13)."""
    digest = blake2b(content, digest_size=_ETAG_BYTES).hexdigest()
    response.headers["ETag"] = f'W/"{digest}"'
    if "HTTP_IF_NONE_MATCH" in request.environ:
        response.make_conditional(request.environ)
