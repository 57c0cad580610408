"""Tests that the names that `web/services.py` and `web/policies/` declare exist."""

from importlib import import_module

import pytest
from flask import Flask

from domain.projects.namespace_changes import list_reserved_names
from web import services
from web.policies.reserved_names import RESERVED_NAMES

_POLICIES = services._POLICIES  # noqa: SLF001 - the table itself


@pytest.mark.one_database("sqlite")
@pytest.mark.parametrize("name", _POLICIES)
def test_a_policy_is_found_by_the_name_of_its_type(app: Flask, name: str) -> None:
    module, _, kind = name.rpartition(".")
    with app.test_request_context():
        found = services.import_function(_POLICIES[name])()
    assert isinstance(found, getattr(import_module(module), kind))


@pytest.mark.one_database("sqlite")
def test_first_segments_of_urls_are_reserved(app: Flask) -> None:
    firsts = list_reserved_names(rule.rule for rule in app.url_map.iter_rules())
    assert firsts - RESERVED_NAMES == frozenset()
    looks_like_ours = {"dashboard", "explore", "search", "-", "help"}
    assert {each for each in RESERVED_NAMES - firsts if "." not in each} <= looks_like_ours
