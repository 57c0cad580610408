"""Properties of endpoints, such as permitted callers, error format and write access.

A blueprint declares the properties that its views share. The decorator of a view
(`web/access/decorators.py`) declares the permitted callers and properties that differ from the
blueprint. `collect_endpoints` combines both when the application starts.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import wraps
from typing import Any, Self, TypedDict, TypeVar, Unpack, cast

from flask import Blueprint, Flask, current_app, request
from flask.globals import app_ctx, request_ctx
from werkzeug.routing import Rule

from web.http.cors import CorsPolicy

View = TypeVar("View", bound=Callable[..., Any])
#: Function that wraps a view in a check.
Guard = Callable[[Callable[..., Any]], Callable[..., Any]]

_EXTENSION_KEY = "gatebell_endpoints"
#: Body size in bytes above which parsing takes several milliseconds.
_LARGE_BODY_BYTES = 64 * 1024
#: Key in the WSGI environment for the start time of a relayed request, by `time.perf_counter`.
START_TIME_KEY = "gatebell.began"
#: Name of Flask's own view for static files.
STATIC_ENDPOINT = "static"


class ErrorFormat(Enum):
    """Format of an endpoint's error responses."""

    #: HTML page, or the MESSAGE format at URLs that end with `.json`.
    PAGE = "page"
    #: JSON object of the form `{"message": …}`.
    MESSAGE = "message"
    #: Format of GitLab's REST API: like MESSAGE, but `{"error": …}` for parameter errors.
    API = "api"
    #: OAuth error (RFC 6749 section 5.2).
    OAUTH = "oauth"
    #: Plain-text message, which Git displays.
    TEXT = "text"
    #: Format of Docker's registry: `{"errors": [{"code": …, "message": …}]}`.
    REGISTRY = "registry"
    #: Format of PagerDuty's Events API v2: `{"status": …, "message": …, "errors": […]}`.
    EVENTS = "events"


#: Error formats of responses to URLs without a view, by URL prefix.
_INTERFACE_PREFIXES = {
    ErrorFormat.API: ("/api/",),
    ErrorFormat.MESSAGE: ("/.well-known/", "/oauth/discovery/"),
}


class ViewProperties(TypedDict, total=False):
    """Properties of a view that differ from its blueprint."""

    errors: ErrorFormat
    #: CORS policy, allowed only for a URL without variables.
    cross_origin: CorsPolicy
    writes: bool
    open_before_password_change: bool
    open_before_second_factor: bool
    is_heavy: bool
    has_mark: bool


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Properties of an endpoint, such as its callers, error format and CORS policy."""

    #: Description of the permitted callers.
    access: str
    errors: ErrorFormat
    #: `True` for web pages, which have a session and forms with CSRF tokens.
    is_page: bool
    #: `True` if applications can link to the page and its forms can redirect to applications.
    leads_to_applications: bool = False
    #: CORS policy, or None if scripts from other origins cannot read the response.
    cross_origin: CorsPolicy | None = None
    #: `True` if the database session writes. None if the method decides (RFC 9110 section 9.2.1). A
    #: POST that writes only through pooled autocommit connections sets False, because a lock held
    #: by the session would block them.
    writes: bool | None = None
    #: `True` if users can open the page before a required password change.
    open_before_password_change: bool = False
    #: `True` if users can open the page before they set up a required second factor.
    open_before_second_factor: bool = False
    #: `True` if a heavy process handles the request (web/server/heavy_requests.py). None if the
    #: size of the body decides.
    is_heavy: bool | None = None
    #: `True` if the page has a mark (web/pages/live_pages.py). Requests for the mark are not heavy,
    #: even if the page is.
    has_mark: bool = False


@dataclass(frozen=True, kw_only=True)
class AccessDecorator:
    """Decorator with the permitted callers of a view and its differences from the blueprint."""

    access: str
    #: Function that wraps the view in a check, or None if anyone may call the view.
    guard: Guard | None = None
    refinement: ViewProperties = field(default_factory=ViewProperties)

    def with_changes(self, **refinement: Unpack[ViewProperties]) -> Self:
        """Return a copy of this decorator for a view that differs from its blueprint."""
        return replace(self, refinement={**self.refinement, **refinement})

    def __call__(self, view: View) -> View:
        """Store this decorator on a view, and wrap the view in the guard.

        Raise TypeError if the view already has an access decorator.
        """
        if find_access_decorator(view) is not None:
            raise TypeError(f"{view.__name__} has two access decorators")
        marked: Any = wraps(view)(self.guard(view)) if self.guard else view
        marked.gatebell_mark = self
        return cast("View", marked)


def find_access_decorator(view: Callable[..., Any]) -> AccessDecorator | None:
    """Return the access decorator of a view, or None."""
    return getattr(view, "gatebell_mark", None)


class PageBlueprint(Blueprint):
    """Blueprint of web pages, with sessions, CSRF tokens and rate limits for pages."""

    def __init__(
        self,
        name: str,
        import_name: str,
        *,
        url_prefix: str | None = None,
        leads_to_applications: bool = False,
    ) -> None:
        """Store Flask's arguments, and whether applications may link to these pages."""
        super().__init__(name, import_name, url_prefix=url_prefix)
        self._leads_to_applications = leads_to_applications

    def describe_endpoint(self, access_decorator: AccessDecorator) -> Endpoint:
        """Return the properties of a view with this decorator."""
        usual = Endpoint(
            access=access_decorator.access,
            errors=ErrorFormat.PAGE,
            is_page=True,
            leads_to_applications=self._leads_to_applications,
        )
        return replace(usual, **access_decorator.refinement)


class NamespaceBlueprint(PageBlueprint):
    """Blueprint of web pages for both projects and groups.

    Views receive the project or group as `holder`.
    """

    def __init__(self, name: str, import_name: str, *, below: str) -> None:
        """Store Flask's arguments, and the part of the URL after the project or group."""
        super().__init__(name, import_name)
        self._below = below

    def add_url_rule(self, rule: str, *args: Any, **options: Any) -> None:
        """Register a view at a project URL and a group URL.

        `url_for` selects one of the URLs by `holder.url_values`.
        """
        for place in ("/<names:project_path>", "/groups/<names:group_path>"):
            super().add_url_rule(f"{place}/-/{self._below}{rule}", *args, **options)


class ApiClientBlueprint(Blueprint):
    """Blueprint of views for non-browser clients, which neither read nor write cookies."""

    def __init__(
        self,
        name: str,
        import_name: str,
        *,
        errors: ErrorFormat,
        url_prefix: str | None = None,
        cross_origin: CorsPolicy | None = None,
    ) -> None:
        """Store Flask's arguments, the error format, and the CORS policy of all URLs."""
        super().__init__(name, import_name, url_prefix=url_prefix)
        self._errors = errors
        self.cross_origin = cross_origin

    def describe_endpoint(self, access_decorator: AccessDecorator) -> Endpoint:
        """Return the properties of a view with this decorator."""
        usual = Endpoint(
            access=access_decorator.access,
            errors=self._errors,
            is_page=False,
            cross_origin=self.cross_origin,
        )
        return replace(usual, **access_decorator.refinement)


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """Properties of all endpoints in an application, and URL prefixes by error format."""

    #: Endpoints by the name of the view in Flask's URL map.
    by_name: Mapping[str, Endpoint]
    #: URL prefixes by error format, for URLs that match no view.
    beginnings: Mapping[ErrorFormat, tuple[str, ...]]


def collect_endpoints(app: Flask) -> None:
    """Collect the properties of all views in the application.

    Raise TypeError if a view has no access decorator.
    """
    by_name = {
        name: _describe_endpoint(app, name, view)
        for name, view in app.view_functions.items()
        if name != STATIC_ENDPOINT
    }
    app.extensions[_EXTENSION_KEY] = Endpoints(
        by_name=by_name, beginnings=_collect_prefixes(app, by_name)
    )


def _describe_endpoint(app: Flask, name: str, view: Callable[..., Any]) -> Endpoint:
    mark = find_access_decorator(view)
    if mark is None:
        message = f"{name} has no access decorator. Add one of web/access/decorators.py"
        raise TypeError(message)
    # Nested blueprints are of the same kind as their outer blueprint.
    blueprint = app.blueprints.get(name.partition(".")[0])
    if not isinstance(blueprint, PageBlueprint | ApiClientBlueprint):
        message = (
            f"{name} must be in a PageBlueprint or a ApiClientBlueprint (web/http/endpoints.py)"
        )
        raise TypeError(message)
    return blueprint.describe_endpoint(mark)


def _collect_prefixes(
    app: Flask, by_name: Mapping[str, Endpoint]
) -> Mapping[ErrorFormat, tuple[str, ...]]:
    found = {
        error_format: {*_INTERFACE_PREFIXES.get(error_format, ())} for error_format in ErrorFormat
    }
    for rule in app.url_map.iter_rules():
        beginning = rule.rule.partition("<")[0]
        if rule.endpoint in by_name and beginning != "/":
            found[by_name[rule.endpoint].errors].add(beginning)
    del found[ErrorFormat.PAGE]  # the format of all other URLs
    return {error_format: tuple(beginnings) for error_format, beginnings in found.items()}


def get_endpoints(app: Flask) -> Endpoints:
    """Return the properties of all endpoints that `collect_endpoints` stored in the application."""
    found: Endpoints = app.extensions[_EXTENSION_KEY]
    return found


def find_endpoint() -> Endpoint | None:
    """Return the endpoint of this request, or None if no view matches its URL and method."""
    endpoints: Endpoints = current_app.extensions[_EXTENSION_KEY]
    return endpoints.by_name.get(request.endpoint or "")


def is_heavy_request() -> bool:
    """Return whether processing this request may take long.

    A body of unknown length counts as large.
    """
    asked = request_ctx.request
    endpoints: Endpoints = app_ctx.app.extensions[_EXTENSION_KEY]
    rule = asked.url_rule
    endpoint = endpoints.by_name.get(rule.endpoint) if rule else None
    if endpoint is None:
        return False
    if endpoint.is_heavy is not None:
        return endpoint.is_heavy and not (endpoint.has_mark and is_page_digest_request())
    length = asked.environ.get("CONTENT_LENGTH")
    if length:
        return int(length) > _LARGE_BODY_BYTES
    return "HTTP_TRANSFER_ENCODING" in asked.environ


def is_page_digest_request() -> bool:
    """Return whether a script requests only the digest of a page, and not the page itself."""
    return request_ctx.request.args.get("_part") == "mark"


def get_error_format() -> ErrorFormat:
    """Return the error format of the response to this request.

    If the URL of a page ends with `.json`, errors are returned as JSON.
    """
    endpoint = find_endpoint()
    found = endpoint.errors if endpoint else _find_format_by_prefix(request.path)
    asks_for_json = found is ErrorFormat.PAGE and request.path.endswith(".json")
    return ErrorFormat.MESSAGE if asks_for_json else found


def _find_format_by_prefix(path: str) -> ErrorFormat:
    """Return the error format for the prefix of a URL that no view handles.

    A request under the prefix of an API comes from an API client, even if the URL is mistyped.
    """
    formats = get_endpoints(current_app).beginnings.items()
    return next(
        (each for each, beginnings in formats if path.startswith(beginnings)), ErrorFormat.PAGE
    )


def list_page_blueprints(app: Flask) -> tuple[str, ...]:
    """Return the names of all page blueprints in the application, including nested blueprints."""
    found = app.blueprints.items()
    return tuple(name for name, blueprint in found if isinstance(blueprint, PageBlueprint))


def collect_cross_origin_policies(app: Flask) -> Mapping[str, CorsPolicy]:
    """Return the CORS policies of blueprints and views by URL regular expression.

    Raise TypeError if a view has a policy but its URL has variables.
    """
    of_blueprints = {
        f"{re.escape(blueprint.url_prefix or '')}/.*": blueprint.cross_origin
        for blueprint in app.blueprints.values()
        if isinstance(blueprint, ApiClientBlueprint) and blueprint.cross_origin
    }
    of_views = {
        _get_fixed_url(rule): mark.refinement["cross_origin"]
        for rule in app.url_map.iter_rules()
        if (mark := find_access_decorator(app.view_functions[rule.endpoint]))
        and "cross_origin" in mark.refinement
    }
    return {**of_blueprints, **of_views}


def _get_fixed_url(rule: Rule) -> str:
    if rule.arguments:
        message = f"{rule.endpoint} has a CORS policy, but its URL has variables"
        raise TypeError(message)
    return rule.rule
