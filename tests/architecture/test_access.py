"""Every view has an access decorator, and the list of addresses repeats it."""

from collections import Counter
from collections.abc import Callable

import pytest
from flask import Blueprint, Flask

import blueprints
from tests.support.wire.addresses import Address, listed_addresses
from web.access.decorators import open_to_anyone, sign_in_required
from web.http.cors import CorsPolicy
from web.http.endpoints import PageBlueprint, get_endpoints
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("sqlite")


def test_access_marks_of_views_match_the_list_of_addresses(app: Flask) -> None:
    endpoints = get_endpoints(app).by_name
    served = [
        Address(method, rule.rule, endpoints[rule.endpoint].access)
        for rule in app.url_map.iter_rules()
        if rule.endpoint != "static"
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    ]
    # Counters and not sets, because an address belongs to only one view.
    there, listed = Counter(served), Counter(listed_addresses())
    missing = [str(each) for each in sorted((there - listed).elements())]
    assert not missing, "\n".join(["Add to tests/support/wire/addresses.txt:", *missing])
    gone = [str(each) for each in sorted((listed - there).elements())]
    assert not gone, "\n".join(["Remove from tests/support/wire/addresses.txt:", *gone])


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
