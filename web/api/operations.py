"""Decorators and routes for API operations.

    silences.bind_crud_actions(actions, "/<int:silence_id>")

An action of the domain (`domain/access/actions.py`) declares its permission, parameters and result.
A view without an action declares them in its decorator:

    @files.get("/projects/<path:reference>/files")
    @declare_operation("files.index", query=FileQuery, returns=File)
    def index(project: ProjectView, query: FileQuery) -> ListPage[File]:

The decorator checks the token, the scope and the role according to the table of permissions
(`domain/access/permissions.py`). It parses the parameters by their schema and serializes the
result. The names of a view's parameters determine the values that it receives. The available names
are `bearer`, `viewer`, `project`, `group` (or `holder` for either), `query`, `body`, and URL
variables.
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

from domain.access.actions import Action, list_actions
from domain.access.checks import check_project_state, check_role
from domain.access.permissions import PERMISSIONS, Permission, PermissionTarget
from domain.core.types.base import Body, Done, GitLabQuery, Query, Resource, SecretResource
from domain.core.types.pagination import KeysetQuery, ListPage, OffsetQuery, PagedQuery
from domain.core.types.validation import (
    find_unknown_names,
    normalize_numbers,
    validate_body,
    validate_query,
)
from domain.projects.access import PRIVATE, get_group, get_project
from domain.projects.paths import find_group_path, find_project_path
from domain.projects.views import ProjectOrGroup, ProjectView, Viewer
from domain.releases.usage.scheduled_parameters import SCHEDULE_NAMES
from web.access.api_limits import RateLimitGroup, count_rate_limited_request, count_search_request
from web.api.callers import (
    CALLER_PARAMETERS,
    get_caller,
    get_fast_operation_caller,
    list_users_in_header_and_query,
    list_users_to_act_as,
)
from web.api.idempotency import run_idempotently
from web.api.list_response_headers import (
    add_ignored_parameters_header,
    build_cursor_headers,
    build_offset_headers,
)
from web.api.parameters import read_all_parameters, read_request_parameters
from web.extensions import db
from web.http.endpoints import AccessDecorator, Guard
from web.http.json_responses import build_serialized_response
from web.http.unit_of_work import get_unit_of_work
from web.http.url_converters import decode_reference
from web.releases.gate import ReleaseGate, open_release_gate
from web.releases.usage_recording import record_fast_operation, record_operation
from web.services import get_current_time

#: Type of a result: a resource, a union of resources, or `true` if clients expect this value.
ResultType = type[Resource] | type[Done] | UnionType
_ETAG_BYTES = 16
_READ_METHODS = frozenset({"GET", "HEAD"})
_DONE = Done(True)  # noqa: FBT003 - the value that clients expect
#: Usual operations on a resource, by their verb in the table of permissions. Each operation has a
#: method, and a flag that is true for URLs of a single resource.
_USUAL_OPERATIONS = {
    "index": ("GET", False),
    "show": ("GET", True),
    "create": ("POST", False),
    "change": ("PUT", True),
    "edit": ("PUT", True),
    "delete": ("DELETE", True),
}
_USUAL_STATUSES = {"POST": HTTPStatus.CREATED, "DELETE": HTTPStatus.NO_CONTENT}


class OperationSpec(NamedTuple):
    """Permission, parameters and result of an API operation."""

    name: str
    permission: Permission
    query: type[Query] | None
    body: type[Body] | None
    #: Type of the result, or None if there is no content or the view creates its own response.
    returns: ResultType | None
    is_list: bool
    status: int
    #: Additional rate limit, or None if only the limit for all requests applies.
    limit: RateLimitGroup | None
    #: Function that reads the parameters of a body.
    reader: Callable[[], dict[str, Any]] = read_all_parameters

    @property
    def is_repeatable(self) -> bool:
        """True if a POST request can be repeated with the same Idempotency-Key."""
        # With another reader, repeated requests cannot be recognized by their content.
        return self.reader is read_all_parameters


@dataclass(frozen=True, kw_only=True)
class Operation(AccessDecorator):
    """Decorator for an API view, with the data for the view's OpenAPI description."""

    arguments: OperationSpec

    # The guard turns the result of the view into a response.
    def __call__(self, view: Callable[..., Any]) -> Callable[..., Response]:  # type: ignore[override]
        """Decorate a view that returns a resource, a `ListPage`, None or a response."""
        return cast("Callable[..., Response]", super().__call__(view))

    def with_body_reader(self, reader: Callable[[], dict[str, Any]]) -> "Operation":
        """Return a copy of this decorator with another function that reads the body."""
        arguments = self.arguments._replace(reader=reader)
        return replace(self, guard=_build_permission_guard(arguments), arguments=arguments)


def declare_operation(
    name: str,
    *,
    query: type[Query] | None = None,
    body: type[Body] | None = None,
    returns: ResultType | None = None,
    status: int = HTTPStatus.OK,
    limit: RateLimitGroup | None = None,
) -> Operation:
    """Return the decorator for the operation with the given name in the table of permissions.

    `returns` may be a union, for example if administrators see more than other users. A `query`
    with page numbers or cursors makes the operation a list, whose view returns `ListPage`.
    """
    arguments = OperationSpec(
        name=name,
        permission=PERMISSIONS[name],
        query=query,
        body=body,
        returns=returns,
        is_list=query is not None and issubclass(query, OffsetQuery | KeysetQuery),
        status=status,
        limit=limit,
    )
    return Operation(
        access=arguments.permission.description,
        guard=_build_permission_guard(arguments),
        arguments=arguments,
    )


class ResourceBlueprint(Blueprint):
    """A blueprint that binds the URLs of a kind of resource to actions of the domain.

        prefix = "/projects/<path:reference>/silences"
        silences = ResourceBlueprint("silences", __name__, url_prefix=prefix)
        silences.bind_crud_actions(actions, "/<int:silence_id>")
        silences.bind_action("GET", "/preview", actions.preview_silence)

    An action that supports both projects and groups receives the project or group as `holder`. Its
    URLs start with `/<any(projects, groups):kind>/<path:reference>`.
    """

    def bind_crud_actions(self, actions: ModuleType, one: str, *first: Action[Any, Any]) -> None:
        """Bind the actions of a module that list, show, create, change and delete a resource.

        If several actions have the same verb, only the first action is bound. The actions in
        `first` take precedence over the actions of the module. The URL of a single resource is the
        URL of the list followed by `one`.
        """
        missing = dict(_USUAL_OPERATIONS)
        for each in (*first, *list_actions(actions, self.name)):
            if each.verb in missing:
                method, is_of_one = missing.pop(each.verb)
                self.bind_action(method, one if is_of_one else "", each)

    def bind_action(  # noqa: PLR0913 - the differences between operations
        self,
        method: str,
        rule: str,
        action: Action[Any, Any],
        *,
        returns: type[Done] | None = None,
        status: int | None = None,
        limit: RateLimitGroup | None = None,
        writes: bool = False,
        around: Sequence[Callable[[Any], Any]] = (),
    ) -> None:
        """Bind an action to a method and a URL.

        By default, the status is 201 for POST, 204 for DELETE, and 200 for other methods. The
        response is the result of the action, unless `returns` is set. Set `writes` for a GET
        request that stores data, such as an audit event. `around` contains decorators for the
        resulting view, innermost first.
        """
        if status is None:
            status = _USUAL_STATUSES.get(method, HTTPStatus.OK) if action.changes else HTTPStatus.OK
        if returns is None and status != HTTPStatus.NO_CONTENT:
            returns = action.result_type
        is_query = action.input_type is not None and issubclass(action.input_type, Query)
        mark = declare_operation(
            action.name,
            query=cast("type[Query]", action.input_type) if is_query else None,
            body=None if is_query else cast("type[Body] | None", action.input_type),
            returns=returns,
            status=status,
            limit=limit,
        )
        if writes or not action.changes:
            mark = mark.with_changes(writes=writes)
        view = _build_view(action, "query" if is_query else "body", returns)
        marked = mark(view)
        for decorate in around:
            marked = decorate(marked)
        self.add_url_rule(rule, action.verb, marked, methods=[method])


def _build_view(
    action: Action[Any, Any], model: str, returns: ResultType | None
) -> Callable[..., Any]:
    """Return a view that runs an action with the parsed parameters."""
    # The decorator passes values by name. It always calls the parsed parameters `query` or `body`.
    names = [model if each.name == action.input_name else each.name for each in action.parameters]

    def view(**given: Any) -> Any:
        returned = action(get_unit_of_work(), *(given[name] for name in names))
        if returns is Done:
            return _DONE
        return None if returns is None else returned

    view.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.KEYWORD_ONLY) for name in names]
    )
    view.__name__, view.__doc__ = action.verb, action.summary
    return view


def declare_fast_operation(name: str, *, returns: type[Resource]) -> Operation:
    """Return the decorator for an operation that is called thousands of times per second.

    The view takes only the bearer and returns a dictionary, which is serialized unchanged.
    `returns` only documents the dictionary. Request parameters are ignored.
    """
    permission = PERMISSIONS[name]
    arguments = OperationSpec(
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
            bearer = get_fast_operation_caller(permission)
            record_fast_operation(bearer)
            content = orjson.dumps(view(bearer=bearer))
            response = build_serialized_response(content)
            _add_etag(response, content)
            return response

        return guarded

    return Operation(access=permission.description, guard=guard, arguments=arguments)


def _build_permission_guard(arguments: OperationSpec) -> Guard:
    def guard(view: Callable[..., Any]) -> Callable[..., Any]:
        named = frozenset(signature(view).parameters)
        known = _list_countable_parameter_names(arguments)

        @wraps(view)
        def guarded(**variables: Any) -> Response:
            given = _authorize_request(arguments, variables)
            gate = open_release_gate(partial(_read_normalized_parameters, arguments))
            names = _read_parameters(arguments, given, gate)
            record_operation(given["bearer"], names, known, variables.get("kind", ""))

            def act() -> Response:
                returned = _find_empty_result(given.get("query")) or view(
                    **{name: each for name, each in given.items() if name in named}
                )
                return _build_response(arguments, returned, given.get("query"), gate)

            return run_idempotently(given["bearer"], act) if arguments.is_repeatable else act()

        return guarded

    return guard


def _authorize_request(arguments: OperationSpec, variables: dict[str, Any]) -> dict[str, Any]:
    """Check the permissions of a request and return the arguments of its view.

    Raise the matching error if the request is not permitted.
    """
    permission = arguments.permission
    # A body with its own reader can only be read by the operation itself.
    is_usual = arguments.reader is read_all_parameters
    bearer = get_caller(
        permission, list_users_to_act_as() if is_usual else list_users_in_header_and_query()
    )
    if arguments.limit is not None:
        count_rate_limited_request(arguments.limit)
    viewer = Viewer(
        user_id=bearer.user_id if bearer else None,
        is_admin=bearer is not None and bearer.is_admin,
        today=get_current_time().date(),
    )
    target = _find_target(permission, variables, viewer)
    room, changes = arguments.name.partition(".")[0], request.method not in _READ_METHODS
    for found in target.values():
        check_role(found, permission.get_minimum_role(is_group=found.is_group), permission.ability)
        is_private = isinstance(found, ProjectView) and found.visibility == PRIVATE
        if permission.in_private and is_private:
            check_role(found, permission.in_private, permission.ability)
        check_project_state(permission, room, found, changes=changes)
    return {**variables, "bearer": bearer, "viewer": viewer, **target}


def _find_target(
    permission: Permission, variables: dict[str, Any], viewer: Viewer
) -> Mapping[str, ProjectOrGroup]:
    """Return the project or group in the URL, by the name of the view's parameter.

    Raise NotFoundError if the viewer cannot see it.
    """
    if permission.target is PermissionTarget.INSTANCE:
        return {}
    session, reference = db.session(), decode_reference(variables.pop("reference"))
    is_either = permission.target is PermissionTarget.NAMESPACE
    if permission.target is PermissionTarget.PROJECT or (
        is_either and variables["kind"] == "projects"
    ):
        path = find_project_path(reference, session=session)
        project = get_project(path, viewer, session=session)
        return {"holder" if is_either else "project": project}
    path = find_group_path(reference, session=session)
    return {"holder" if is_either else "group": get_group(path, viewer, session=session)}


def _read_normalized_parameters(arguments: OperationSpec) -> Mapping[str, Any]:
    """Return the request parameters, with integers in canonical form, such as `5` for `05`."""
    given = read_request_parameters()
    return given if arguments.query is None else normalize_numbers(arguments.query, given)


def _read_parameters(
    arguments: OperationSpec, given_values: dict[str, Any], gate: ReleaseGate | None
) -> Collection[str]:
    """Add the parsed query or body to `given_values`, and return the parameter names."""
    if arguments.body is not None:
        sent = gate.rename_parameters() if gate else arguments.reader()
        given_values["body"] = validate_body(arguments.body, sent)
        names = sent.keys() - CALLER_PARAMETERS
        if ignored := sorted(find_unknown_names(arguments.body, names)):
            add_ignored_parameters_header(ignored)
        return names
    if arguments.query is None:
        return request.args.keys() - CALLER_PARAMETERS
    asked = {name: each for name, each in request.args.lists() if name not in CALLER_PARAMETERS}
    given_values["query"] = query = validate_query(arguments.query, asked)
    if unknown := find_unknown_names(arguments.query, asked):
        add_ignored_parameters_header(unknown)
    if getattr(query, "search", ""):
        count_search_request()
    return asked.keys()


def _find_empty_result(query: Query | None) -> ListPage[Any] | None:
    """Return an empty list page if the query cannot match any resource, or None otherwise."""
    if not (isinstance(query, GitLabQuery) and query.matches_nothing):
        return None
    has_numbers = isinstance(query, OffsetQuery) and query.pagination != "keyset"
    return ListPage(items=(), total=0 if has_numbers else None)


def _list_countable_parameter_names(arguments: OperationSpec) -> frozenset[str]:
    """Return the names of parameters that may appear in records of API calls."""
    schemas = [each for each in (arguments.query, arguments.body) if each is not None]
    return SCHEDULE_NAMES.union(*(each.model_fields for each in schemas))


def _build_response(
    arguments: OperationSpec, returned: Any, query: Query | None, gate: ReleaseGate | None
) -> Response:
    if isinstance(returned, Response):
        return returned
    if returned is None:
        is_later = arguments.status == HTTPStatus.ACCEPTED
        return Response(status=HTTPStatus.ACCEPTED if is_later else HTTPStatus.NO_CONTENT)
    items = returned.items if isinstance(returned, ListPage) else returned
    is_list = isinstance(returned, ListPage)
    writer = _get_type_adapter(cast("Any", arguments.returns), is_list=is_list)
    content = writer.dump_json(
        items, exclude=gate.list_removed_fields(is_list=is_list) if gate else None
    )
    response = build_serialized_response(content, arguments.status)
    response.headers.update(_build_result_headers(returned, query))
    if request.method in _READ_METHODS:
        _add_etag(response, content)
    return response


@cache
def _get_type_adapter(returns: Any, *, is_list: bool) -> TypeAdapter[Any]:
    return TypeAdapter(Sequence[returns] if is_list else returns)


def _build_result_headers(returned: Any, query: Query | None) -> Mapping[str, str]:
    if isinstance(returned, ListPage):
        return _build_page_headers(returned, query)
    return {"Cache-Control": "no-store"} if isinstance(returned, SecretResource) else {}


def _build_page_headers(list_page: ListPage[Any], query: Query | None) -> Mapping[str, str]:
    if isinstance(query, OffsetQuery) and list_page.total is not None:
        cursor = list_page.next_cursor
        return build_offset_headers(
            query.page, query.page_size, total=list_page.total, keyset_from=cursor
        )
    # Lists that support both kinds of pagination may use keyset pagination by default.
    kind = {"pagination": "keyset"} if isinstance(query, PagedQuery) else {}
    return build_cursor_headers(list_page.next_cursor, **kind)


def _add_etag(response: Response, content: bytes) -> None:
    """Add an ETag, and change the response to 304 if the client sent the same ETag.

    See RFC 9110 section 13.
    """
    digest = blake2b(content, digest_size=_ETAG_BYTES).hexdigest()
    response.headers["ETag"] = f'W/"{digest}"'
    if "HTTP_IF_NONE_MATCH" in request.environ:
        response.make_conditional(request.environ)
