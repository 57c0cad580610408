"""Every view says who may call it, and who that is stands in a list."""

import pytest
from flask import Flask

from tests.support.addresses import Address, listed_addresses
from web.http.access import access_of

pytestmark = pytest.mark.one_database("sqlite")


def test_every_address_is_for_those_whom_the_list_names(app: Flask) -> None:
    served = []
    for rule in app.url_map.iter_rules():
        access = access_of(app.view_functions[rule.endpoint])
        if rule.endpoint != "static":
            words = access.words if access else "nobody says who"
            methods = (rule.methods or set()) - {"HEAD", "OPTIONS"}
            served += [Address(method, rule.rule, words) for method in methods]
    # Sorted and not as sets: an address belongs to one view only.
    assert sorted(served) == sorted(listed_addresses())
