"""The mark of an operation of the API: what it asks for, takes and returns.

    silences.bind_usual(actions, "/<int:silence_id>")

An action of the domain (`domain/access/actions.py`) says what it asks for, takes and returns. For a
view that has no action, its mark does:

    @files.get("/projects/<path:reference>/files")
    @operation("files.index", query=FileQuery, returns=File)
    def index(project: ProjectView, query: FileQuery) -> Found[File]:

The mark checks token, scope and role by the table (`domain/access/permissions.py`), reads the
parameters by their schema, and writes what the view returns by another one. A view gets what it
names among its arguments: `bearer`, `viewer`, `project`, `group` (or `holder`, for either),
`query`, `body`, and the variables of its URL.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from hashlib import blake2b
from http import HTTPStatus
from inspect import Parameter, Signature, signature
from types import ModuleType, UnionType
from typing import Any, NamedTuple, cast

import orjson
from flask import Blueprint, Response, request
from pydantic import TypeAdapter

from domain.access.actions import Action, operations_in
from domain.access.checks import check_role, check_state
from domain.access.permissions import PERMISSIONS, Permission, Target
from domain.core.types.base import (
    Body,
    Done,
    Found,
    GitLabQuery,
    KeysetQuery,
    OffsetQuery,
    PagedQuery,
    Query,
    Resource,
    SecretResource,
)
from domain.core.types.reading import (
    read_body,
    read_query,
    unknown_names,
    with_plain_numbers,
)
from domain.projects.access import PRIVATE, get_group, get_project
from domain.projects.paths import group_path, project_path
from domain.projects.views import Holder, ProjectView, Viewer
from domain.releases.usage.schedule_names import SCHEDULE_NAMES
from web.access.api_limits import Family, count_request, count_search
from web.api.callers import (
    NO_PARAMETERS,
    get_caller,
    get_ready_caller,
    named_anywhere,
    named_beside_the_body,
)
from web.api.idempotency import once
from web.api.list_headers import cursor_headers, name_ignored, offset_headers
from web.api.parameters import all_parameters, given_parameters
from web.extensions import db
from web.http.endpoints import Guard, Mark
from web.http.json_responses import written_json_response
from web.http.routes import decoded_reference
from web.http.work import work
from web.releases.gate import Gate, open_gate
from web.releases.usage_recording import record_operation, record_ready_operation
from web.services import now

#: A resource, a union of some, or `true` where clients wait for that.
Returns = type[Resource] | type[Done] | UnionType
_ETAG_BYTES = 16
_READING = frozenset({"GET", "HEAD"})
_DONE = Done(True)  # noqa: FBT003 - what clients wait for
#: What most resources can be asked for, by the verb in the table of permissions: the method, and
#: whether the URL is that of one resource.
_USUAL = {
    "index": ("GET", False),
    "show": ("GET", True),
    "create": ("POST", False),
    "change": ("PUT", True),
    "edit": ("PUT", True),
    "delete": ("DELETE", True),
}
_USUAL_STATUS = {"POST": HTTPStatus.CREATED, "DELETE": HTTPStatus.NO_CONTENT}


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


class Resources(Blueprint):
    """The URLs of a kind of resource, with the action of the domain that each carries out.

    silences = Resources("silences", __name__, url_prefix="/projects/<path:reference>/silences")
    silences.bind_usual(actions, "/<int:silence_id>")
    silences.bind("GET", "/preview", actions.preview_silence)

    An action of projects and groups alike takes either as `holder`; its URLs are below
    `/<any(projects, groups):kind>/<path:reference>`.
    """

    def bind_usual(self, actions: ModuleType, one: str) -> None:
        """Let requests list, show, create, change and delete, where a module has an action for it.

        It is the first one that the table of permissions names after these resources. `one` is what
        the URL of a resource has after that of the list.
        """
        missing = dict(_USUAL)
        for each in operations_in(actions, self.name):
            if each.verb in missing:
                method, is_of_one = missing.pop(each.verb)
                self.bind(method, one if is_of_one else "", each)

    def bind(  # noqa: PLR0913 - what operations differ in
        self,
        method: str,
        rule: str,
        act: Action[Any, Any],
        *,
        returns: type[Done] | None = None,
        status: int | None = None,
        limit: Family | None = None,
        writes: bool = False,
        around: Sequence[Callable[[Any], Any]] = (),
    ) -> None:
        """Let requests of a method and URL carry out an action.

        By default a POST is answered with 201, a DELETE with 204, and all others with 200, and
        with what the action returns unless something else `returns`. A GET that stores something,
        such as an audit event, `writes`. `around` are decorators of the marked view, the innermost
        first.
        """
        if status is None:
            status = _USUAL_STATUS.get(method, HTTPStatus.OK) if act.changes else HTTPStatus.OK
        if returns is None and status != HTTPStatus.NO_CONTENT:
            returns = act.returns
        is_query = act.takes is not None and issubclass(act.takes, Query)
        mark = operation(
            act.name,
            query=cast("type[Query]", act.takes) if is_query else None,
            body=None if is_query else cast("type[Body] | None", act.takes),
            returns=returns,
            status=status,
            limit=limit,
        )
        if writes or not act.changes:
            mark = mark.but(writes=writes)
        view = _view_of(act, "query" if is_query else "body", returns)
        marked = mark(view)
        for decorate in around:
            marked = decorate(marked)
        self.add_url_rule(rule, act.verb, marked, methods=[method])


def _view_of(act: Action[Any, Any], model: str, returns: Returns | None) -> Callable[..., Any]:
    """Return a view that carries out an action with what the mark has read."""
    # The mark passes what a view names: the name of the model is the mark's own.
    names = [model if each.name == act.model_name else each.name for each in act.parameters]

    def view(**given: Any) -> Any:
        returned = act(work(), *(given[name] for name in names))
        if returns is Done:
            return _DONE
        return None if returns is None else returned

    view.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.KEYWORD_ONLY) for name in names]
    )
    view.__name__, view.__doc__ = act.verb, act.summary
    return view


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
    target = _target(permission, variables, viewer)
    room, changes = arguments.name.partition(".")[0], request.method not in _READING
    for found in target.values():
        check_role(found, permission.least_in(is_group=found.is_group), permission.ability)
        is_private = isinstance(found, ProjectView) and found.visibility == PRIVATE
        if permission.in_private and is_private:
            check_role(found, permission.in_private, permission.ability)
        check_state(permission, room, found, changes=changes)
    return {**variables, "bearer": bearer, "viewer": viewer, **target}


def _target(
    permission: Permission, variables: dict[str, Any], viewer: Viewer
) -> Mapping[str, Holder]:
    """Return the project or group of the URL, which the viewer sees, by the name for views."""
    if permission.target is Target.INSTANCE:
        return {}
    session, reference = db.session(), decoded_reference(variables.pop("reference"))
    is_either = permission.target is Target.NAMESPACE
    if permission.target is Target.PROJECT or (is_either and variables["kind"] == "projects"):
        path = project_path(reference, session=session)
        project = get_project(path, viewer, session=session)
        return {"holder" if is_either else "project": project}
    path = group_path(reference, session=session)
    return {"holder" if is_either else "group": get_group(path, viewer, session=session)}


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
        is_later = arguments.status == HTTPStatus.ACCEPTED
        return Response(status=HTTPStatus.ACCEPTED if is_later else HTTPStatus.NO_CONTENT)
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
        cursor = found.next_cursor
        return offset_headers(query.page, query.size, total=found.total, keyset_from=cursor)
    # A list with both kinds of pages can have chosen this one without being asked for it.
    kind = {"pagination": "keyset"} if isinstance(query, PagedQuery) else {}
    return cursor_headers(found.next_cursor, **kind)


def _make_conditional(response: Response, content: bytes) -> None:
    """Give a response an ETag, and make it 304 for a client that has it (RFC 9110 section 13)."""
    digest = blake2b(content, digest_size=_ETAG_BYTES).hexdigest()
    response.headers["ETag"] = f'W/"{digest}"'
    if "HTTP_IF_NONE_MATCH" in request.environ:
        response.make_conditional(request.environ)
