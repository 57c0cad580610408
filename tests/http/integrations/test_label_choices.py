"""Labels that an Alertmanager integration reads as environment and service."""

import pytest

from domain.access.roles import Role
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import alice
from tests.support.accounts.team import browser_of
from tests.support.alerts.integration_pages import address
from tests.support.alerts.senders import connect, item, webhook
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = [pytest.mark.both_databases, pytest.mark.spec("H1")]


def test_labels_are_proposed_and_chosen_for_environment_and_service(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    script = api_caller(
        gatebell, alice(gatebell), f"/projects/{endpoint.project.replace('/', '%2F')}"
    )
    at = f"/alert_management_integrations/{endpoint.id}"

    def fire(name: str, **labels: str) -> tuple[str | None, str | None]:
        labels = {"alertname": name, "severity": "critical", **labels}
        assert endpoint.post(webhook(item(name, labels=labels))).status_code == 200
        found = script.done("GET", "/alert_management_alerts")
        shown = next(each for each in found if each["title"] == name)
        return shown["environment"], shown["service"]

    assert fire("A", namespace="shop", job="api", pod="x-1") == (None, None)
    assert fire("B", namespace="mail", job="api", pod="x-2") == (None, None)
    labels = script.done("GET", f"{at}/labels")
    assert labels[:2] == [
        {
            "name": "namespace",
            "values": 2,
            "examples": ["mail", "shop"],
            "proposed_as": "environment",
        },
        {"name": "job", "values": 1, "examples": ["api"], "proposed_as": "service"},
    ]
    assert [each["name"] for each in labels[2:]] == ["alertname", "pod", "severity"]
    # The page proposes the same labels, and one click accepts a proposal.
    browser = browser_of(gatebell, endpoint.project, Role.MAINTAINER)
    page = browser.get(address(gatebell, endpoint.project, f"{endpoint.id}/configure"))
    assert "<code>namespace</code> has 2 values: <bdi>mail, shop</bdi>" in page.text
    submit(browser, page, form_to(page, "/configure"), use="environment:namespace")
    assert script.done("GET", at)["environment_labels"] == ["namespace"]
    assert fire("C", namespace="shop", job="api") == ("shop", None)
    # The API accepts a list; its first present label takes precedence over the usual label.
    chosen = script.done("PUT", at, json={"service_labels": ["app", "job"]})
    assert (chosen["environment_labels"], chosen["service_labels"]) == (
        ["namespace"],
        ["app", "job"],
    )
    assert fire("D", namespace="", job="api", service="s", platform_environment_name="eu") == (
        "eu",
        "api",
    )
    assert fire("E", app="web", job="api") == (None, "web")
    # Stored alerts keep their environment, and a table of severity words keeps the chosen labels.
    assert (
        next(
            each for each in script.done("GET", "/alert_management_alerts") if each["title"] == "A"
        )["environment"]
        is None
    )
    page = browser.get(address(gatebell, endpoint.project, f"{endpoint.id}/configure"))
    submit(browser, page, form_to(page, "/severity_words"), words="page = high")
    assert fire("F", namespace="shop", app="web") == ("shop", "web")
    # Other formats read both fields with their mapping.
    other = connect(gatebell, endpoint.project)
    there = f"/alert_management_integrations/{other.id}"
    refused = script.done("PUT", there, json={"service_labels": "job"}, status=400)
    assert "Map the fields instead" in str(refused)
