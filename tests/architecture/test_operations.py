"""Operations of the API and the table of what they ask for belong together."""

import pytest
from flask import Flask

from web.api.operations import Operation
from web.api.permissions import PERMISSIONS
from web.http.endpoints import find_mark

pytestmark = pytest.mark.one_database("sqlite")


def test_each_row_of_the_table_is_that_of_the_view_with_its_name(app: Flask) -> None:
    marks = {name: find_mark(view) for name, view in app.view_functions.items()}
    operations = {
        endpoint: mark.arguments.name
        for endpoint, mark in marks.items()
        if isinstance(mark, Operation)
    }
    assert operations == {f"api_v4.{name}": name for name in PERMISSIONS}
