"""Operations of the API match the table of permissions."""

import pytest
from flask import Flask

from domain.access.permissions import PERMISSIONS
from web.api.operations import Operation
from web.http.endpoints import find_access_decorator

pytestmark = pytest.mark.one_database("sqlite")


def test_each_row_of_the_table_belongs_to_the_view_with_its_name(app: Flask) -> None:
    marks = {name: find_access_decorator(view) for name, view in app.view_functions.items()}
    operations = {
        endpoint: mark.arguments.name
        for endpoint, mark in marks.items()
        if isinstance(mark, Operation)
    }
    assert operations == {f"api_v4.{name}": name for name in PERMISSIONS}


#: Resources whose reading has a common rate limit (L2).
_COMMON = ("users.", "projects.", "groups.", "members.")
#: Exceptions: applications request these at each sign-in, so they only count among all requests.
_NOT_COMMON = ("users.current", "users.ssh_keys")


@pytest.mark.spec("L2")
def test_reading_users_projects_groups_and_members_has_a_rate_limit(app: Flask) -> None:
    reading = {rule.endpoint for rule in app.url_map.iter_rules() if "GET" in (rule.methods or ())}
    marks = [find_access_decorator(app.view_functions[endpoint]) for endpoint in reading]
    without = [
        mark.arguments.name
        for mark in marks
        if isinstance(mark, Operation)
        and mark.arguments.name.startswith(_COMMON)
        and mark.arguments.name not in _NOT_COMMON
        and mark.arguments.limit is None
    ]
    assert without == [], "state `limit=` in the decorator (web/access/api_limits.py)"
