"""Every view has an access decorator, which is repeated in a list of addresses.

The operations of the API are in the stored OpenAPI document, and all other addresses are in
tests/support/wire/addresses.txt.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from flask import Blueprint, Flask
from werkzeug.routing import Rule

import blueprints
from tests.support.wire.addresses import Address, listed_addresses
from tests.support.wire.openapi import read_stored_operations
from web.access.decorators import open_to_anyone, sign_in_required
from web.api.openapi.views import list_paths
from web.api.operations import Operation
from web.http.cors import CorsPolicy
from web.http.endpoints import PageBlueprint, find_access_decorator, get_endpoints
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("sqlite")


def test_access_marks_of_views_match_the_list_of_addresses(app: Flask) -> None:
    served = [
        Address(method, rule.rule, access)
        for rule, method, access in list_routes(app)
        if not is_api_operation(app, rule)
    ]
    # Counters and not sets, because an address belongs to only one view.
    there, listed = Counter(served), Counter(listed_addresses())
    missing = [str(each) for each in sorted((there - listed).elements())]
    assert not missing, "\n".join(["Add to tests/support/wire/addresses.txt:", *missing])
    gone = [str(each) for each in sorted((listed - there).elements())]
    assert not gone, "\n".join(["Remove from tests/support/wire/addresses.txt:", *gone])


def test_access_marks_of_api_operations_match_the_stored_description(app: Flask) -> None:
    served = Counter(
        Address(method, path.template, access)
        for rule, method, access in list_routes(app)
        if is_api_operation(app, rule)
        for path in list_paths(rule, app.url_map)
    )
    stored = Counter(
        Address(each.method, each.path, each.requirement)
        for each in read_stored_operations()
        if each.requirement
    )
    assert stored.total() > 400
    different = sorted({*(served - stored), *(stored - served)})
    assert not different, "\n".join(["Review, and run `make docs`:", *map(str, different)])


def list_routes(app: Flask) -> Iterator[tuple[Rule, str, str]]:
    """Yield each URL rule with each of its methods and the access mark of its view."""
    endpoints = get_endpoints(app).by_name
    for rule in app.url_map.iter_rules():
        if rule.endpoint != "static":
            for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
                yield rule, method, endpoints[rule.endpoint].access


def is_api_operation(app: Flask, rule: Rule) -> bool:
    return isinstance(find_access_decorator(app.view_functions[rule.endpoint]), Operation)


def unmarked() -> str:
    return "hello"


@open_to_anyone
def marked() -> str:
    return "hello"


@open_to_anyone.with_changes(cross_origin=CorsPolicy())
def readable() -> str:
    return "hello"


@pytest.mark.parametrize(
    ("kind", "view", "missing"),
    [
        (PageBlueprint, unmarked, "odd.view has no access decorator"),
        (Blueprint, marked, "odd.view must be in a PageBlueprint or a ApiClientBlueprint"),
        (PageBlueprint, readable, "odd.view has a CORS policy, but its URL has variables"),
    ],
)
def test_views_with_missing_or_wrong_access_marks_are_rejected(
    make_app: Callable[[Settings], Flask],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Blueprint],
    view: Callable[[], str],
    missing: str,
) -> None:
    odd = kind("odd", __name__)
    odd.add_url_rule("/odd/<int:number>", "view", view)
    monkeypatch.setattr(blueprints, "BLUEPRINTS", (*blueprints.BLUEPRINTS, odd))
    with pytest.raises(TypeError, match=missing):
        make_app(settings)


def test_a_view_cannot_have_two_access_marks() -> None:
    @sign_in_required
    def view() -> str:
        return "hello"

    with pytest.raises(TypeError, match="view has two access decorators"):
        open_to_anyone(view)
