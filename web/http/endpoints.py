"""What is true of each endpoint: who may call it, the format of its errors, whether it writes.

A blueprint declares what its views have in common. The mark of a view (`web/access/decorators.py`)
declares who may call it and what differs. `describe_endpoints` joins both when the application
starts.
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
#: Makes a view of a view, with the check before it.
Guard = Callable[[Callable[..., Any]], Callable[..., Any]]

_EXTENSION = "gatebell_endpoints"
#: A larger body takes several milliseconds to read.
_LARGE_BODY_BYTES = 64 * 1024
#: The key of the WSGI environment for when a relayed request began, by `time.perf_counter`.
BEGAN = "gatebell.began"
#: Flask's own view.
STATIC_FILES = "static"


class ErrorFormat(Enum):
    """The format of an endpoint's errors."""

    #: A page for people; as MESSAGE at URLs that end with `.json`.
    PAGE = "page"
    #: `{"message": …}`.
    MESSAGE = "message"
    #: GitLab's REST API: as MESSAGE, but `{"error": …}` for parameters.
    API = "api"
    #: RFC 6749 section 5.2.
    OAUTH = "oauth"
    #: A sentence, which Git shows.
    TEXT = "text"
    #: Docker's registry: `{"errors": [{"code": …, "message": …}]}`.
    REGISTRY = "registry"
    #: PagerDuty's Events API v2: `{"status": …, "message": …, "errors": […]}`.
    EVENTS = "events"


#: How URLs of interfaces begin, besides those of their views.
_INTERFACES = {
    ErrorFormat.API: ("/api/",),
    ErrorFormat.MESSAGE: ("/.well-known/", "/oauth/discovery/"),
}


class Refinement(TypedDict, total=False):
    """What a view may say beside who may call it, where it differs from its blueprint."""

    errors: ErrorFormat
    #: Only at a URL without variables.
    cross_origin: CorsPolicy
    writes: bool
    open_before_password_change: bool
    open_before_second_factor: bool
    is_heavy: bool


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """What is true of an endpoint."""

    #: Who may call it, in words.
    access: str
    errors: ErrorFormat
    #: Whether browsers show it: with a session, and forms that carry a token.
    is_page: bool
    #: Whether an application can lead people here, and its forms back there.
    leads_to_applications: bool = False
    #: None where no script of another origin may read the response.
    cross_origin: CorsPolicy | None = None
    #: Whether its session writes; None if its method says so (RFC 9110 section 9.2.1). A POST that
    #: writes through the kept connections alone says False: a lock of the session would block them.
    writes: bool | None = None
    #: Whether people reach it who have to change their password first.
    open_before_password_change: bool = False
    #: Whether people reach it who have to set up a second factor first.
    open_before_second_factor: bool = False
    #: Whether a heavy process answers it (web/server/heavy_requests.py); None if its body decides.
    is_heavy: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Decorator of a view: who may call it, and in what it differs from its blueprint."""

    access: str
    #: None if everybody reaches the view.
    guard: Guard | None = None
    refinement: Refinement = field(default_factory=Refinement)

    def but(self, **refinement: Unpack[Refinement]) -> Self:
        """Return this mark for a view that differs from its blueprint."""
        return replace(self, refinement={**self.refinement, **refinement})

    def __call__(self, view: View) -> View:
        """Mark a view, and put the guard before it."""
        if find_mark(view) is not None:
            raise TypeError(f"{view.__name__} has two marks")
        marked: Any = wraps(view)(self.guard(view)) if self.guard else view
        marked.gatebell_mark = self
        return cast("View", marked)


def find_mark(view: Callable[..., Any]) -> Mark | None:
    """Return the mark of a view, or None."""
    return getattr(view, "gatebell_mark", None)


class PageBlueprint(Blueprint):
    """Views for browsers, with session, form tokens and the limits of pages."""

    def __init__(
        self,
        name: str,
        import_name: str,
        *,
        url_prefix: str | None = None,
        leads_to_applications: bool = False,
    ) -> None:
        """Take Flask's arguments, and whether applications lead people to these pages."""
        super().__init__(name, import_name, url_prefix=url_prefix)
        self._leads_to_applications = leads_to_applications

    def describe(self, mark: Mark) -> Endpoint:
        """Return what is true of a view with this mark."""
        usual = Endpoint(
            access=mark.access,
            errors=ErrorFormat.PAGE,
            is_page=True,
            leads_to_applications=self._leads_to_applications,
        )
        return replace(usual, **mark.refinement)


class NamespaceBlueprint(PageBlueprint):
    """Pages of a project, and the same ones of a group: a view gets either as `holder`."""

    def __init__(self, name: str, import_name: str, *, below: str) -> None:
        """Take Flask's arguments, and the part of the URL after that of the project or group."""
        super().__init__(name, import_name)
        self._below = below

    def add_url_rule(self, rule: str, *args: Any, **options: Any) -> None:
        """Add a view at two URLs; `url_for` chooses by `holder.url_values`."""
        for place in ("/<names:project_path>", "/groups/<names:group_path>"):
            super().add_url_rule(f"{place}/-/{self._below}{rule}", *args, **options)


class MachineBlueprint(Blueprint):
    """Views for programs, which read and write no cookie."""

    def __init__(
        self,
        name: str,
        import_name: str,
        *,
        errors: ErrorFormat,
        url_prefix: str | None = None,
        cross_origin: CorsPolicy | None = None,
    ) -> None:
        """Take Flask's arguments, the format of errors, and the policy for all below the prefix."""
        super().__init__(name, import_name, url_prefix=url_prefix)
        self._errors = errors
        self.cross_origin = cross_origin

    def describe(self, mark: Mark) -> Endpoint:
        """Return what is true of a view with this mark."""
        usual = Endpoint(
            access=mark.access,
            errors=self._errors,
            is_page=False,
            cross_origin=self.cross_origin,
        )
        return replace(usual, **mark.refinement)


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """The endpoints of an application."""

    #: By Flask's name of the endpoint.
    by_name: Mapping[str, Endpoint]
    #: How the URLs of interfaces begin, by the format of their errors.
    beginnings: Mapping[ErrorFormat, tuple[str, ...]]


def describe_endpoints(app: Flask) -> None:
    """Look at every view of the application; raise TypeError for one without a mark."""
    by_name = {
        name: _describe(app, name, view)
        for name, view in app.view_functions.items()
        if name != STATIC_FILES
    }
    app.extensions[_EXTENSION] = Endpoints(by_name=by_name, beginnings=_beginnings(app, by_name))


def _describe(app: Flask, name: str, view: Callable[..., Any]) -> Endpoint:
    mark = find_mark(view)
    if mark is None:
        message = f"{name} does not say who may call it: give it a mark of web/access/decorators.py"
        raise TypeError(message)
    # What is nested in a blueprint is of its kind.
    blueprint = app.blueprints.get(name.partition(".")[0])
    if not isinstance(blueprint, PageBlueprint | MachineBlueprint):
        raise TypeError(f"{name} is neither a page nor for machines: see web/http/endpoints.py")
    return blueprint.describe(mark)


def _beginnings(
    app: Flask, by_name: Mapping[str, Endpoint]
) -> Mapping[ErrorFormat, tuple[str, ...]]:
    found = {error_format: {*_INTERFACES.get(error_format, ())} for error_format in ErrorFormat}
    for rule in app.url_map.iter_rules():
        beginning = rule.rule.partition("<")[0]
        if rule.endpoint in by_name and beginning != "/":
            found[by_name[rule.endpoint].errors].add(beginning)
    del found[ErrorFormat.PAGE]  # the format of all other URLs
    return {error_format: tuple(beginnings) for error_format, beginnings in found.items()}


def endpoints_of(app: Flask) -> Endpoints:
    """Return the endpoints of an application."""
    found: Endpoints = app.extensions[_EXTENSION]
    return found


def find_endpoint() -> Endpoint | None:
    """Return the endpoint of this request, or None if no view takes its URL and method."""
    endpoints: Endpoints = current_app.extensions[_EXTENSION]
    return endpoints.by_name.get(request.endpoint or "")


def is_heavy_request() -> bool:
    """Return whether this request may compute for long.

    A body of unknown length may be large.
    """
    asked = request_ctx.request
    endpoints: Endpoints = app_ctx.app.extensions[_EXTENSION]
    rule = asked.url_rule
    endpoint = endpoints.by_name.get(rule.endpoint) if rule else None
    if endpoint is None:
        return False
    if endpoint.is_heavy is not None:
        return endpoint.is_heavy
    length = asked.environ.get("CONTENT_LENGTH")
    if length:
        return int(length) > _LARGE_BODY_BYTES
    return "HTTP_TRANSFER_ENCODING" in asked.environ


def error_format() -> ErrorFormat:
    """Return the format of errors of this request."""
    endpoint = find_endpoint()
    found = endpoint.errors if endpoint else _format_without_view(request.path)
    asks_for_json = found is ErrorFormat.PAGE and request.path.endswith(".json")
    return ErrorFormat.MESSAGE if asks_for_json else found


def _format_without_view(path: str) -> ErrorFormat:
    """Return the format where no view takes the URL or the method: that of the URL's interface.

    It is a program that calls an interface, even with a mistyped URL.
    """
    formats = endpoints_of(current_app).beginnings.items()
    return next(
        (each for each, beginnings in formats if path.startswith(beginnings)), ErrorFormat.PAGE
    )


def page_blueprints(app: Flask) -> tuple[str, ...]:
    """Return the names of the blueprints with pages; blueprints in them belong to them."""
    found = app.blueprints.items()
    return tuple(name for name, blueprint in found if isinstance(blueprint, PageBlueprint))


def cross_origin_policies(app: Flask) -> Mapping[str, CorsPolicy]:
    """Return the policies of blueprints and views, by regular expressions of their URLs.

    Raises TypeError for a view whose URL has variables.
    """
    of_blueprints = {
        f"{re.escape(blueprint.url_prefix or '')}/.*": blueprint.cross_origin
        for blueprint in app.blueprints.values()
        if isinstance(blueprint, MachineBlueprint) and blueprint.cross_origin
    }
    of_views = {
        _fixed_url(rule): mark.refinement["cross_origin"]
        for rule in app.url_map.iter_rules()
        if (mark := find_mark(app.view_functions[rule.endpoint]))
        and "cross_origin" in mark.refinement
    }
    return {**of_blueprints, **of_views}


def _fixed_url(rule: Rule) -> str:
    if rule.arguments:
        message = f"{rule.endpoint} says which origins may call it, but its URL has variables"
        raise TypeError(message)
    return rule.rule
