"""Every view says who may call it."""

from flask import Flask

from web.access import access_of


def test_every_view_has_a_mark_of_who_may_call_it(app: Flask) -> None:
    unmarked = {
        endpoint
        for endpoint, view in app.view_functions.items()
        if access_of(view) is None and endpoint != "static"
    }
    assert unmarked == set()


def test_an_address_belongs_to_one_view_only(app: Flask) -> None:
    seen: dict[tuple[str, str], str] = {}
    for rule in app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            assert seen.setdefault((rule.rule, method), rule.endpoint) == rule.endpoint
