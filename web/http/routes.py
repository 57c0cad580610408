"""What the URL map says about names, and what names say about URLs."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from flask import Flask, current_app, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import (
    IntegerConverter,
    Map,
    MapAdapter,
    PathConverter,
    RequestRedirect,
    ValidationError,
)

from domain.database.paging import LARGEST_ID
from domain.projects.creation import reserved_names as first_parts
from web.http.public_address import path_of
from web.services import settings

#: Names that no route begins with today and that people would still mistake for the service.
_ALSO = frozenset(
    {
        *("-", "help", "dashboard", "explore", "search"),
        # What browsers and robots ask every host for.
        *("robots.txt", "favicon.ico", "sitemap.xml"),
        *("apple-touch-icon.png", "apple-touch-icon-precomposed.png"),
    }
)


def _reserved_in(url_map: Map) -> frozenset[str]:
    return first_parts(rule.rule for rule in url_map.iter_rules()) | _ALSO


def reserved_names() -> frozenset[str]:
    """Return the names that no top-level group may have, in lower case.

    One is the first part of the path below which the service is reached: `/gate/shop` would have
    two meanings otherwise, whether a proxy takes `/gate` away or not.
    """
    return _reserved_in(current_app.url_map) | first_parts([path_of(settings().base_url)])


class NamesConverter(PathConverter):
    """The full path of a group or project: never one that begins like a route of the service.

    Without it `/api/v4/nothing` would be taken for a project, and a machine sent to sign in.
    """

    # Possessive: what a segment has taken it keeps, or each route would try all its letters anew.
    _segment = r"[A-Za-z0-9_][A-Za-z0-9_.\-]*+"
    regex = rf"{_segment}(?:/{_segment})*"

    @cached_property
    def _reserved(self) -> frozenset[str]:
        # Read at the first request, when the map is complete.
        return _reserved_in(self.map)

    def to_python(self, value: str) -> str:
        """Return the path, or say that this is none."""
        if value.partition("/")[0].lower() in self._reserved:
            raise ValidationError
        return value


class RepositoryConverter(NamesConverter):
    """The path of a project as Git writes it, with `.git` at its end."""

    regex = rf"{NamesConverter.regex}(?<=\.git)"


class RowIdConverter(IntegerConverter):
    """A number that a database can be asked for: larger ones lead nowhere, and are no fault."""

    def __init__(self, url_map: Map, max: int = LARGEST_ID, **limits: Any) -> None:  # noqa: A002 - Werkzeug's name
        """Take Werkzeug's own limits; the largest is the one that all ids have."""
        super().__init__(url_map, max=max, **limits)


def existing_methods(candidates: Iterable[str]) -> list[str]:
    """Return those of the methods that this request's address can be asked with.

    Werkzeug counts every rule that fits, those too whose converter then refuses the address.
    """
    adapter = current_app.create_url_adapter(request)
    return [method for method in candidates if adapter and _leads_somewhere(adapter, method)]


def _leads_somewhere(adapter: MapAdapter, method: str) -> bool:
    try:
        adapter.match(method=method)
    except RequestRedirect:
        return True
    except HTTPException:
        return False
    return True


def know_names(app: Flask) -> None:
    """Teach the URL map `<names:…>`, `<repository:…>`, and how large an `<int:…>` can be."""
    app.url_map.converters["names"] = NamesConverter
    app.url_map.converters["repository"] = RepositoryConverter
    app.url_map.converters["int"] = RowIdConverter
