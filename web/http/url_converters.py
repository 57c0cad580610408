"""URL converters for paths of groups and projects."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from flask import Flask, current_app, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import (
    BaseConverter,
    IntegerConverter,
    Map,
    MapAdapter,
    PathConverter,
    RequestRedirect,
    ValidationError,
)

from domain.core.database.pagination import MAX_ID
from web.policies.reserved_names import RESERVED_NAMES

#: URL prefix of the API.
API_PREFIX = "/api/v4/"
_ENCODED_REFERENCE = re.compile(r"(/api/v4/(?:projects|groups|namespaces)/)([^/?#]*%2[fF][^/?#]*)")
_ENCODED_SLASH = "%2F"


def decode_reference(reference: str) -> str:
    """Decode the slashes of a path that was sent as one URL segment."""
    return reference.replace(_ENCODED_SLASH, "/")


def encode_path(path: str) -> str:
    """Return a request's path for use in a URL. Encoded slashes stay encoded."""
    return quote(path).replace(quote(_ENCODED_SLASH), _ENCODED_SLASH)


def restore_encoded_slashes(path: str, sent: str) -> str:
    """Return an API path in which the encoded slashes of a reference stay encoded.

    In `/api/v4/projects/acme%2Fshop`, the reference is one segment.
    """
    found = _ENCODED_REFERENCE.search(sent.partition("?")[0])
    if found is None:
        return path
    before, reference = found[1], unquote_to_bytes(found[2]).decode("latin-1")
    if not path.startswith(before + reference):
        return path
    return before + reference.replace("/", _ENCODED_SLASH) + path[len(before + reference) :]


class NamespacePathConverter(PathConverter):
    """Converter for the full path of a group or project, whose first segment must not be reserved.

    If reserved segments were allowed, `/api/v4/nothing` would match a project, and API clients
    would be redirected to the sign-in page.
    """

    # Possessive quantifiers prevent each route from backtracking over all characters.
    _segment = r"[A-Za-z0-9_][A-Za-z0-9_.\-]*+"
    regex = rf"{_segment}(?:/{_segment})*"

    def to_python(self, value: str) -> str:
        """Return the path unchanged.

        Raise ValidationError if its first segment is reserved.
        """
        if value.partition("/")[0].lower() in RESERVED_NAMES:
            raise ValidationError
        return value


class RepositoryConverter(NamespacePathConverter):
    """Converter for Git repository paths, which end with `.git`."""

    regex = rf"{NamespacePathConverter.regex}(?<=\.git)"


class ShaConverter(BaseConverter):
    """Converter for the full SHA-1 or SHA-256 ID of a commit."""

    regex = "(?:[0-9a-f]{40}|[0-9a-f]{64})"


class RowIdConverter(IntegerConverter):
    """Converter for row IDs. Numbers that exceed the range of the databases result in 404."""

    def __init__(self, url_map: Map, max: int = MAX_ID, **limits: Any) -> None:  # noqa: A002 - Werkzeug's name
        """Store Werkzeug's arguments, with the largest ID as the maximum."""
        super().__init__(url_map, max=max, **limits)


#: Prefix of the endpoint names of receivers.
_RECEIVER_ENDPOINT_PREFIX = "intake."
_READ_METHODS = frozenset({"GET", "HEAD"})


def list_existing_methods(candidates: Iterable[str], *, path: str | None = None) -> list[str]:
    """Return the methods that are allowed for a path, by default the path of this request.

    Werkzeug also counts rules whose converter rejects the path. The URL of a receiver looks like
    the URL of a group, which allows GET.
    """
    adapter = current_app.create_url_adapter(request)
    if adapter is None:
        return []
    is_receiver = _find_endpoint_name(adapter, "POST", path).startswith(_RECEIVER_ENDPOINT_PREFIX)
    return [
        each
        for each in candidates
        if _has_matching_route(adapter, each, path) and not (is_receiver and each in _READ_METHODS)
    ]


def find_parent_page_path() -> str | None:
    """Return the path and query of the nearest page above the URL of a form, or None."""
    adapter, path = current_app.create_url_adapter(request), request.path
    is_read = request.method in _READ_METHODS
    while is_read and adapter and ("/-/" in path or path.startswith("/admin/")):
        path = path.rpartition("/")[0]
        if _has_matching_route(adapter, "GET", path):
            return f"{path}?{query}" if (query := request.query_string.decode("latin-1")) else path
    return None


def is_receiver_read_request() -> bool:
    """Return whether this is a read request to a receiver URL, which looks like a group URL."""
    is_read = request.method in _READ_METHODS and request.path.endswith((".json", "/api/v2/alerts"))
    return is_read and bool(list_existing_methods(["POST"]))


def is_delivery_to_wrong_receiver_url() -> bool:
    """Return whether this is a delivery to a receiver URL that is cut off or too long.

    The result depends only on the URL, so that strangers cannot find out whether the project
    exists.
    """
    is_post = request.method == "POST" and request.routing_exception is not None
    return is_post and f"{request.path}/".find("/alerts/notify/") > 0


def _find_endpoint_name(adapter: MapAdapter, method: str, path: str | None) -> str:
    try:
        endpoint: str = adapter.match(path, method=method)[0]
    except HTTPException:
        return ""
    return endpoint


def _has_matching_route(adapter: MapAdapter, method: str, path: str | None) -> bool:
    try:
        adapter.match(path, method=method)
    except RequestRedirect:
        return True
    except HTTPException:
        return False
    return True


def add_path_converters(app: Flask) -> None:
    """Add the converters `<names:…>`, `<repository:…>`, `<sha:…>` and the limited `<int:…>`."""
    app.url_map.converters["names"] = NamespacePathConverter
    app.url_map.converters["repository"] = RepositoryConverter
    app.url_map.converters["sha"] = ShaConverter
    app.url_map.converters["int"] = RowIdConverter
