"""Every view says who may call it, and who that is stands in a list."""

from collections import Counter

import pytest
from flask import Flask

from tests.support.wire.addresses import Address, listed_addresses
from web.http.access import access_of

pytestmark = pytest.mark.one_database("sqlite")


def test_every_address_is_for_those_whom_the_list_names(app: Flask) -> None:
    served: list[Address] = []
    for rule in app.url_map.iter_rules():
        access = access_of(app.view_functions[rule.endpoint])
        if rule.endpoint != "static":
            words = access.words if access else "nobody says who"
            methods = (rule.methods or set()) - {"HEAD", "OPTIONS"}
            served += [Address(method, rule.rule, words) for method in methods]
    # Counted and not as sets: an address belongs to one view only.
    there, listed = Counter(served), Counter(listed_addresses())
    assert (there - listed, listed - there) == (Counter(), Counter())
