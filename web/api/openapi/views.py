"""Uniform descriptions of all views: API operations and other endpoints."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from inspect import getdoc
from itertools import product
from types import UnionType
from typing import Any, get_args

from flask import Flask
from pydantic import BaseModel
from werkzeug.routing import AnyConverter, BaseConverter, IntegerConverter, Map, PathConverter, Rule
from werkzeug.routing.rules import parse_converter_args

from domain.core.types.pagination import KeysetQuery, OffsetQuery
from web.api.openapi.view_descriptions import (
    FORM,
    JSON,
    AdditionalResponse,
    Requirement,
    ViewDescription,
    find_additional_errors,
    find_media_types,
    find_view_description,
)
from web.api.operations import Operation, OperationSpec
from web.api.schemas.errors import Message
from web.http.endpoints import ErrorFormat, find_access_decorator, get_endpoints
from web.releases.gate import list_schedule_entries

_URL_VARIABLE = re.compile(r"<(?:(?P<converter>\w+)(?:\((?P<limits>.*?)\))?:)?(?P<name>\w+)>")
#: Names of variables in GitLab's documentation, by the name in URL rules.
_PUBLIC_NAMES = {"reference": "id"}
_VARIABLE_DESCRIPTIONS = {
    "reference": (
        "ID of the {place}, or its full path with `%2F` for slashes, such as `acme%2Fshop`."
    ),
    "project_path": "Full path of the project, such as `acme/shop`. Slashes need not be encoded.",
    "slug": "Name of the integration, for readable URLs. The name is not checked.",
    "endpoint_identifier": "Identifier of the integration: 16 hexadecimal digits.",
    "iid": "Number of the alert or incident in its project.",
    "alert_iid": "Number of the alert in its project.",
    "uid": "The `client_id` of the application.",
    "tag_name": "Name of the tag.",
    "revision": (
        "Commit hash with at least 7 digits, or the name of a branch or tag. Encode slashes as "
        "`%2F`."
    ),
    "sha": "Full hash of the commit, with 40 or 64 hexadecimal digits.",
}
_RESOURCE_NOUNS = {"projects": "project", "groups": "group"}
#: Lowest ID of a row.
_MIN_ID = 1


@dataclass(frozen=True, kw_only=True)
class DescribedPath:
    """URL path in the OpenAPI description."""

    template: str
    parameters: tuple[dict[str, Any], ...]
    #: Values chosen for `<any(…):…>` in the rule of this path.
    chosen: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _UrlVariable:
    """Variable in a URL rule, such as `<int:silence_id>`."""

    text: str
    name: str
    converter: BaseConverter


def list_paths(rule: Rule, url_map: Map) -> Iterator[DescribedPath]:
    """Yield a path for each combination of the `<any(…):…>` values in a URL rule."""
    variables = [_parse_variable(found, url_map) for found in _URL_VARIABLE.finditer(rule.rule)]
    choices = [each for each in variables if isinstance(each.converter, AnyConverter)]
    others = [each for each in variables if each not in choices]
    for chosen in product(*(_list_choices(each.converter) for each in choices)):
        template = rule.rule
        for variable, word in zip(choices, chosen, strict=True):
            template = template.replace(variable.text, word)
        place = _find_resource_noun(template)
        for variable in others:
            template = template.replace(variable.text, f"{{{_get_public_name(variable.name)}}}")
        parameters = tuple(_describe_path_parameter(each, place) for each in others)
        yield DescribedPath(template=template, parameters=parameters, chosen=chosen)


def _parse_variable(match: re.Match[str], url_map: Map) -> _UrlVariable:
    args, limits = parse_converter_args(match["limits"] or "")
    kind = url_map.converters[match["converter"] or "default"]
    return _UrlVariable(text=match[0], name=match["name"], converter=kind(url_map, *args, **limits))


def _list_choices(converter: BaseConverter) -> list[str]:
    return sorted(converter.items) if isinstance(converter, AnyConverter) else []


def _get_public_name(name: str) -> str:
    return _PUBLIC_NAMES.get(name, name)


def _find_resource_noun(template: str) -> str:
    return next(
        (word for part, word in _RESOURCE_NOUNS.items() if f"/{part}/" in template), "project"
    )


def _describe_path_parameter(variable: _UrlVariable, place: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": _get_public_name(variable.name),
        "in": "path",
        "required": True,
        "schema": _build_variable_schema(variable.converter),
    }
    if text := _describe_variable(variable.name):
        found["description"] = text.format(place=place)
    return found


def _describe_variable(name: str) -> str:
    if name.endswith("_id"):
        return f"ID of the {name.removesuffix('_id').replace('_', ' ')}."
    return _VARIABLE_DESCRIPTIONS.get(name, "")


def _build_variable_schema(converter: BaseConverter) -> dict[str, Any]:
    if isinstance(converter, IntegerConverter):
        return {"type": "integer", "minimum": _MIN_ID, "maximum": converter.max}
    if isinstance(converter, PathConverter) and type(converter) is not PathConverter:
        # JSON Schema uses JavaScript regular expressions, which have no possessive quantifiers.
        return {"type": "string", "pattern": f"^{converter.regex.replace('*+', '*')}$"}
    return {"type": "string", "minLength": 1}


_FLASK_METHODS = frozenset({"HEAD", "OPTIONS"})
_WRITE_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
#: Response to GET requests at a previous path.
_MOVED_RESPONSES: Mapping[int, AdditionalResponse] = {
    302: AdditionalResponse(
        text="The project or group has a new path. `Location` contains the new URL.",
        returns=Message,
        headers=("Location",),
    )
}
#: Security schemes of the API, without OAuth.
_TOKEN_REQUIREMENTS: tuple[Requirement, ...] = ({"access_token": ()}, {"private_token": ()})


@dataclass(frozen=True, kw_only=True)
class DescribedView:
    """HTTP method at a path, with its complete description."""

    name: str
    tag: str
    path: DescribedPath
    method: str
    summary: str
    text: str
    security: tuple[Requirement, ...]
    query: type[BaseModel] | None
    body: type[BaseModel] | None
    accepts: tuple[str, ...]
    #: Schemas of the response. Empty if the response is not JSON.
    returns: tuple[type[BaseModel], ...]
    status: int
    #: Media type of the response, or None if it has no body.
    content_type: str | None
    #: Query type of a list, which has pagination headers. None for other views.
    paging: type[BaseModel] | None
    #: `True` if the response has an ETag.
    is_conditional: bool
    #: `True` if the request can be repeated with the same Idempotency-Key.
    is_repeatable: bool
    errors: tuple[int, ...]
    error_format: ErrorFormat
    others: Mapping[int, AdditionalResponse]


def list_described_views(app: Flask) -> Iterator[DescribedView]:
    """Yield a description of each view, in the order of the URL map."""
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        description = find_view_description(view)
        if description is not None:
            if not rule.arguments & set(description.without):
                yield from _describe_endpoint(app, rule, view, description)
        elif isinstance(mark := find_access_decorator(view), Operation):
            yield from _describe_api_operation(app, rule, view, mark.arguments)


def _list_methods(rule: Rule) -> list[str]:
    return sorted((rule.methods or set()) - _FLASK_METHODS)


def _split_docstring(view: Callable[..., Any]) -> tuple[str, str]:
    summary, _, text = (getdoc(view) or "").partition("\n")
    return summary.removesuffix("."), " ".join(text.split())


def _describe_endpoint(
    app: Flask, rule: Rule, view: Callable[..., Any], view_description: ViewDescription
) -> Iterator[DescribedView]:
    summary, text = _split_docstring(view)
    error_format = get_endpoints(app).by_name[rule.endpoint].errors
    for path in list_paths(rule, app.url_map):
        for index, method in enumerate(_list_methods(rule)):
            yield DescribedView(
                name=f"{view_description.name}.{method.lower()}"
                if index
                else view_description.name,
                tag=view_description.tag,
                path=path,
                method=method,
                summary=summary,
                text=text,
                security=view_description.caller.security_requirements,
                query=view_description.query,
                body=view_description.body if method != "GET" else None,
                accepts=view_description.accepts,
                returns=(view_description.returns,) if view_description.returns else (),
                status=view_description.status,
                content_type=view_description.content_type
                if view_description.returns or view_description.content_type != JSON
                else None,
                paging=None,
                is_conditional=view_description.is_conditional,
                is_repeatable=False,
                errors=() if error_format is ErrorFormat.PAGE else (*view_description.errors, 503),
                error_format=error_format,
                others=view_description.others,
            )


def _describe_api_operation(
    app: Flask, rule: Rule, view: Callable[..., Any], operation_spec: OperationSpec
) -> Iterator[DescribedView]:
    summary, text = _split_docstring(view)
    files = find_media_types(view)
    usual = files.get("file", JSON if operation_spec.returns else None)
    for path in list_paths(rule, app.url_map):
        for index, method in enumerate(_list_methods(rule)):
            in_query = operation_spec.query or (operation_spec.body if method == "DELETE" else None)
            yield DescribedView(
                name=".".join(
                    (operation_spec.name, *path.chosen, *([method.lower()] if index else []))
                ),
                tag=get_tag(operation_spec.name),
                path=path,
                method=method,
                summary=summary,
                text=f"{text}\n\nRequires {operation_spec.permission.description}.".strip(),
                security=_list_security_requirements(operation_spec),
                query=in_query,
                body=operation_spec.body if method != "DELETE" else None,
                accepts=(JSON, FORM),
                returns=_list_result_models(operation_spec.returns),
                status=_get_success_status(operation_spec, is_file=bool(files)),
                content_type=next((files[each] for each in path.chosen if each in files), usual),
                paging=operation_spec.query if operation_spec.is_list and not files else None,
                is_conditional=method == "GET" and operation_spec.returns is not None,
                is_repeatable=method == "POST" and operation_spec.is_repeatable,
                errors=tuple(
                    sorted(
                        {
                            *_list_error_statuses(operation_spec, method, rule),
                            *find_additional_errors(view),
                        }
                    )
                ),
                error_format=ErrorFormat.API,
                others=_MOVED_RESPONSES
                if method == "GET" and _has_namespace_reference(rule)
                else {},
            )


#: Tags that differ from the names of permissions, which never change.
_TAGS = {"on_call_handover_notes": "On call handoff notes"}


def get_tag(name: str) -> str:
    """Return the tag of an operation, such as `API usage` for `api_usage.index`."""
    room = name.partition(".")[0]
    words = _TAGS.get(room) or room.replace("_", " ").capitalize()
    return words.replace("Api ", "API ")


def _get_success_status(operation_spec: OperationSpec, *, is_file: bool) -> int:
    if operation_spec.returns or is_file or operation_spec.status != HTTPStatus.OK:
        return operation_spec.status
    return HTTPStatus.NO_CONTENT


def _list_result_models(returns: type[BaseModel] | UnionType | None) -> tuple[type[BaseModel], ...]:
    if returns is None:
        return ()
    return get_args(returns) if isinstance(returns, UnionType) else (returns,)


def _list_security_requirements(operation_spec: OperationSpec) -> tuple[Requirement, ...]:
    by_scope: tuple[Requirement, ...] = tuple(
        {"oauth2": (scope,)} for scope in operation_spec.permission.scopes
    )
    without_token: tuple[Requirement, ...] = ({},) if operation_spec.permission.is_open else ()
    return (*by_scope, *_TOKEN_REQUIREMENTS, *without_token)


def _list_error_statuses(operation_spec: OperationSpec, method: str, rule: Rule) -> set[int]:
    """Return the possible error statuses of an API operation."""
    always = (400, 401, 403, 429, 503)
    unknown = (404,) if rule.arguments else ()
    changing = (409,) if method in _WRITE_METHODS else ()
    moved = (405,) if method in _WRITE_METHODS and _has_namespace_reference(rule) else ()
    with_query = (414,) if operation_spec.query is not None else ()
    with_body = (408, 413) if operation_spec.body is not None else ()
    removed = (
        each.change.status for each in list_schedule_entries(method, rule.rule) if each.rejects_call
    )
    return {*always, *unknown, *changing, *moved, *with_query, *with_body, *removed}


def _has_namespace_reference(rule: Rule) -> bool:
    """Return whether the URL contains the path of a project or group."""
    return "reference" in rule.arguments


def has_numbered_pages(query: type[BaseModel] | None) -> bool:
    """Return whether a query selects numbered pages of a list."""
    return query is not None and issubclass(query, OffsetQuery)


def has_cursor_pages(query: type[BaseModel] | None) -> bool:
    """Return whether a query selects pages of a list by cursor."""
    return query is not None and issubclass(query, KeysetQuery)
