"""Conditions of rules and routes."""

from typing import Any

import pytest

from domain.alerts.matching.alert_labels import AlertLabels
from domain.alerts.matching.conditions import AlertConditions, meets_conditions, parse_conditions
from domain.core.errors import InvalidError

ALERT = AlertLabels(
    alert_id=1,
    project_id=1,
    iid=1,
    severity="high",
    environment="production/eu",
    service=None,
    labels={"team": "db", "host": "db-1"},
)


@pytest.mark.parametrize(
    ("json", "is_met"),
    [
        ({}, True),
        ({"severities": []}, True),
        ({"severities": ["critical", "HIGH"]}, True),
        ({"severities": ["critical"]}, False),
        ({"environments": ["production/eu"]}, True),
        ({"environments": ["production"]}, False),
        ({"environments": ["staging", "production/*"]}, True),
        ({"environments": ["*/e."]}, False),
        ({"services": ["web"]}, False),
        ({"services": ["*"]}, True),
        ({"labels": 'team="db"'}, True),
        ({"labels": ['team="db"', 'host=~"db-.*"']}, True),
        ({"labels": {"team": "db", "host": "db-2"}}, False),
        ({"labels": {"team": "db"}, "severities": ["high"]}, True),
        ({"labels": {"team": "db"}, "severities": ["low"]}, False),
        ({"labels": None, "other": 1}, True),
    ],
)
def test_an_alert_has_to_meet_all_conditions(json: dict[str, Any], is_met: bool) -> None:  # noqa: FBT001 - a column of the table
    conditions = parse_conditions(json)
    assert meets_conditions(conditions, ALERT) is is_met
    assert parse_conditions(conditions.to_json()) == conditions


def test_conditions_are_shown_as_json_and_in_forms() -> None:
    conditions = parse_conditions({"severities": ["Low", "low"], "labels": {"a b": 'x"'}})
    assert conditions == AlertConditions(severities=("low",), labels=conditions.labels)
    assert conditions.to_json() == {
        "severities": ["low"],
        "environments": [],
        "services": [],
        "labels": [r'"a b"="x\""'],
    }
    assert conditions.labels_text == r'"a b"="x\""'


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("severities", each) for each in ("high", ["urgent"], [1], {"a": 1}, ["high"] * 101)),
        *(("environments", each) for each in ([""], [" "], ["x" * 256], "production", 5)),
        *(("services", each) for each in ([None], [["a"]])),
        *(("labels", each) for each in ("team", ["team"], [5], {"a": 5}, {"": "x"}, 7, True)),
        ("labels", ["a=b"] * 51),
    ],
)
def test_invalid_conditions_are_rejected_with_their_name(field: str, value: object) -> None:
    with pytest.raises(InvalidError) as refused:
        parse_conditions({field: value})
    assert refused.value.field == field
