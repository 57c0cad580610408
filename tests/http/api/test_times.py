"""Tests of times in requests: with an offset, or local if a schedule or window has a time zone."""

from datetime import UTC, datetime

import pytest
import requests
from pydantic import BaseModel, ValidationError

from domain.core.types.base import RequestLocalTime, RequestTime, RequestTimeOrDay
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import make_project, make_user
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


class Times(BaseModel):
    """A model with one field of each kind."""

    at: RequestTime = datetime(2030, 1, 1, tzinfo=UTC)
    local: RequestLocalTime = datetime(2030, 1, 1, tzinfo=UTC)
    day: RequestTimeOrDay = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("field", ["at", "day"])
@pytest.mark.parametrize("value", ["2030-05-31T12:00", "2030-05-31 12:00:00", "20300531T120000"])
def test_a_time_without_an_offset_is_rejected_with_an_example(field: str, value: str) -> None:
    with pytest.raises(ValidationError, match="must have an offset, such as 2030-05-31T12:00:00Z"):
        Times.model_validate({field: value})


def test_a_local_time_has_no_offset_until_its_zone_is_known() -> None:
    assert Times.model_validate({"local": "2030-05-31T12:00"}).local.tzinfo is None
    read = Times.model_validate({"local": "2030-05-31T12:00+02:00"}).local
    assert read == datetime(2030, 5, 31, 10, tzinfo=UTC)


def test_only_lists_known_from_gitlab_accept_a_date() -> None:
    assert Times.model_validate({"day": "2030-05-31"}).day == datetime(2030, 5, 31, tzinfo=UTC)
    with pytest.raises(ValidationError, match="must have an offset"):
        Times.model_validate({"at": "2030-05-31"})


def test_the_api_names_the_parameter_and_the_remedy(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    shop = f"/projects/{make_project(gatebell, alice).replace('/', '%2F')}"
    call = api_caller(gatebell, alice, shop)
    silence = {"matchers": "service=web", "comment": "deploy", "ends_at": "2090-01-01T10:00"}
    said = call.refused("POST", "/silences", json=silence, status=400)
    assert "`ends_at` must have an offset, such as 2090-01-01T10:00:00Z" in said
    said = call.refused("GET", "/audit_events?created_after=2030-01-01T10:00", status=400)
    assert "`created_after` must have an offset" in said
    assert call.done("GET", "/audit_events?created_after=2090-01-01") == []


def test_the_openapi_document_describes_where_a_local_time_is_allowed(
    gatebell: LiveGatebell,
) -> None:
    schemas = requests.get(f"{gatebell.url}/api/openapi.json", timeout=60).json()["components"][
        "schemas"
    ]
    override, silence = schemas["NewOverride"], schemas["NewSilence"]
    assert "local time" in override["properties"]["starts_at"]["description"]
    assert "format" not in override["properties"]["starts_at"]
    assert "date-time" in str(silence["properties"]["ends_at"])
