"""Types of request bodies, and the fields that a request set."""

from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import Field

from domain.core.errors import InvalidParametersError
from domain.core.types.base import Body, Duration, make_fields_optional
from domain.core.types.validation import validate_body


class _New(Body):
    """A new object."""

    name: str
    length: Duration = timedelta(hours=1)
    size: Annotated[int, Field(ge=1, le=5)] = 1


@make_fields_optional
class _Change(_New):
    """Changes of an object."""


def test_a_change_contains_only_the_given_fields() -> None:
    assert validate_body(_Change, {}).given_values == {}
    assert validate_body(_Change, {"size": 3, "length": "5m"}).given_values == {
        "size": 3,
        "length": timedelta(minutes=5),
    }
    assert issubclass(_Change, _New)
    assert _Change.__name__ == "_Change"


def test_a_change_keeps_the_limits_of_the_fields() -> None:
    with pytest.raises(InvalidParametersError) as refused:
        validate_body(_Change, {"size": 6})
    assert [tuple(each) for each in refused.value.problems] == [("size", "must be at most 5")]


def test_the_schema_of_a_change_names_no_default() -> None:
    properties = _Change.model_json_schema()["properties"]
    assert all("default" not in each for each in properties.values())
    assert "required" not in _Change.model_json_schema()


@pytest.mark.parametrize(
    ("given", "length"), [("90m", timedelta(minutes=90)), (90, timedelta(seconds=90))]
)
def test_a_duration_is_a_text_or_a_number_of_seconds(given: Any, length: timedelta) -> None:
    read = validate_body(_New, {"name": "a", "length": given})
    assert read.length == length
    assert read.model_dump(mode="json")["length"] in {"1h30m", "1m30s"}


def test_an_invalid_duration_is_an_error_of_its_field() -> None:
    with pytest.raises(InvalidParametersError) as refused:
        validate_body(_New, {"name": "a", "length": "soon"})
    assert str(refused.value) == ('`length` "soon" is not a duration. Use 30s, 5m, 1h30m or 2d.')
