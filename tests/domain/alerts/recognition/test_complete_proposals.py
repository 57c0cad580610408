"""Proposals whose title, affected object and fingerprint need several values of the message."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import FORMATS
from domain.alerts.integrations.samples import (
    MappingChoices,
    RuleChoices,
    build_rule_choices,
    parse_mapping_choices,
    parse_sample,
)
from domain.alerts.parsing.incoming_alert import IncomingAlert, Severity
from domain.alerts.parsing.mapping import AlertField
from domain.alerts.parsing.mapping_rules import NO_RULES, ValueJoin
from domain.alerts.parsing.payload_paths import format_path
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import GuessedMapping, guess_mapping
from tests.support.alerts.senders import PAYLOADS

_ENDPOINT = next(each for each in FORMATS if each.has_mapping)
_READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
_NOW = datetime(2026, 11, 29, tzinfo=UTC)

#: Titles, affected objects and paths of fingerprints, by tool.
_EXPECTED: Mapping[str, tuple[str, str, str]] = {
    "airweave": (
        "Finance Data: Authentication token expired",
        "",
        "collection_readable_id",
    ),
    "entri_monitor": ("domain.record_missing: example.com", "example.com", "domain"),
    "expo_eas_build": (
        "Unknown error. Please see logs.",
        "example",
        "metadata.workflow, projectName, appId, metadata.appIdentifier",
    ),
    "gridx": (
        "Roof inverter south: ERROR",
        "Haus Mustermann",
        "data.name, type, data.applianceID, data.gatewayID",
    ),
    "infisical_pki": (
        "cert-manager.application.certificate.expiry: api.example.com",
        "api.example.com",
        "data.alert.id, data.items[0].title",
    ),
    "kuvasz": (
        "GitHub API: HTTP_DOWN",
        "http:GitHub API",
        "monitorId, monitorUrn, monitorDetailsUrl",
    ),
    "peekaping": (
        "Billing API: HTTP request failed with status: 503",
        "",
        "heartbeat.monitor_id",
    ),
    "platerecognizer_visionalert": ("Cam-01: Offline", "", "cameras[0].serial"),
    "rundeck": (
        "Global Log Filter Usage: failure",
        "welcome-project-community",
        "execution.job.id, execution.serverUUID, execution.job.project",
    ),
    "sitesage": (
        "Food Safety Temperature Outside Expected Range",
        "#6439",
        "sensor_output_id, location_name, appliance_id",
    ),
    "betterdb": (
        "Writes are being rejected (rdb_bgsave_failed) and clients are receiving errors",
        "valkey-prod-1.example.com",
        "instance.host, instance.port",
    ),
    "certwatch": (
        "certificate.expiring: shop.example.com",
        "shop.example.com",
        "certificate.subject, certificate.domain, certificate.id",
    ),
    "dependabot": (
        "semver vulnerable to Regular Expression Denial of Service",
        "pika-pack",
        "alert.number, repository.id, alert.dependency.manifest_path",
    ),
    "dnsradar": (
        "MISMATCH: example.com",
        "example.com",
        "event.monitor_id, event.domain.domain",
    ),
    "ecostruxure": (
        "UPS is on battery power in response to an input power problem",
        "UPS-DC1-RackA",
        "id",
    ),
    "engenius": (
        "Switch Port Link Status Change",
        "SW-Floor2-Rack1",
        "alertId, deviceName, alertData.port",
    ),
    "gamemanage": ("server.down: gm_live_7f3a", "gm_live_7f3a", "server"),
    "infoblox": ("Host Memory Usage Limit Exceeded", "", "short_subject, message"),
    "moira": (
        "Disk usage above 90% on database hosts",
        "",
        "events[0].metric, trigger.id, trigger.name",
    ),
    "planetscale": (
        "keyspace.storage: orders",
        "orders",
        "event, database, resource.branch_name, resource.keyspace_name",
    ),
    "postal": (
        "No TXT records were returned for postal-Xk2vPq._domainkey.mail.acme.example",
        "mail.acme.example",
        "payload.uuid",
    ),
    "restic_backup_helper": ("backup: backup-node", "backup-node", "job, hostname, repository"),
    "samsara": ("Panic Button: T-881 51BJ7M", "T-881 51BJ7M", "data.incidentUrl"),
    "strata": (
        "Primary tunnel of the service connection is down",
        "dc-frankfurt",
        "data.incident_id",
    ),
    "viziosense": (
        "LIMIT_REACHED: Canteen-East",
        "Canteen-East",
        "alert[0].reference_marker.name, alert[0].deviceUuid, type",
    ),
}


def _load(name: str) -> dict[str, Any]:
    stored = json.loads((PAYLOADS / "unknown" / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(stored, dict)
    return stored


def _guess(stored: Mapping[str, Any]) -> GuessedMapping:
    return guess_mapping(
        Messages(**{each: stored[each] for each in ("firing", "repeat", "recovery")})
    )


def _read(payload: object, guessed: GuessedMapping) -> Sequence[IncomingAlert]:
    parsed = _ENDPOINT.parse(payload, now=_NOW, reading=_READING, mapping=guessed.mapping)
    return parsed.alerts


@pytest.mark.parametrize("name", _EXPECTED)
def test_the_title_the_object_and_the_fingerprint_are_complete(name: str) -> None:
    stored = _load(name)
    guessed = _guess(stored)
    (alert,) = _read(stored["firing"], guessed)
    join = guessed.mapping.rules.joins.get(AlertField.FINGERPRINT, ValueJoin(()))
    paths = (guessed.mapping.paths[AlertField.FINGERPRINT][0], *join.paths)
    affected = ", ".join(alert.hosts) or alert.service or ""
    assert (alert.title, affected, ", ".join(map(format_path, paths))) == _EXPECTED[name]
    for each in ("other", "second"):
        if stored.get(each) and (name, each) != ("betterdb", "second"):
            assert _read(stored[each], guessed)[0].fingerprint != alert.fingerprint
    if stored["recovery"]:
        (recovery,) = _read(stored["recovery"], guessed)
        assert (recovery.fingerprint, bool(recovery.ended_at)) == (alert.fingerprint, True)


@pytest.mark.parametrize("name", ["betterdb", "gamemanage"])
def test_the_kind_that_changes_in_the_recovery_is_the_last_value_to_compare(name: str) -> None:
    asked = {each.name: each for each in _guess(_load(name)).questions}
    offered = [format_path(leaf.path) for leaf in asked[AlertField.FINGERPRINT].candidates]
    assert "event" in offered[:4]


def test_each_event_with_its_own_state_becomes_an_alert() -> None:
    stored = _load("moira")
    other = stored["other"]["events"]
    both = {**stored["firing"], "events": [*stored["firing"]["events"], *other]}
    first, second = _read(both, _guess(stored))
    assert first.fingerprint != second.fingerprint


@pytest.mark.parametrize(
    ("name", "rule"),
    [("ecostruxure", ""), ("power_snitch", "subject contains the word “recovered”")],
)
def test_no_sentence_of_one_problem_resolves_alerts(name: str, rule: str) -> None:
    guessed = _guess(_load(name))
    assert [each.phrase for each in guessed.mapping.rules.resolved_when] == ([rule] if rule else [])


def test_a_key_that_contains_severity_is_a_severity() -> None:
    stored = _load("ecostruxure")
    guessed = _guess(stored)
    levels = [_read(stored[each], guessed)[0].severity for each in ("firing", "repeat")]
    assert levels == [Severity.LOW, Severity.CRITICAL]


@pytest.mark.parametrize(
    "url",
    [
        "https://alerts.example.com/hooks/infoblox",
        "https://gatebell.example.com/acme/shop/alerts/notify/tool/0123456789abcdef.json",
    ],
)
def test_the_url_of_the_receiver_is_not_used(url: str) -> None:
    message = {"subject": "Host Memory Usage Limit Exceeded", "url": url, "severity": "High"}
    guessed = guess_mapping(Messages(firing=message, repeat=message))
    assert AlertField.SOURCE_URL not in guessed.mapping.paths
    assert ("url",) not in guessed.mapping.all_paths


def test_a_link_to_a_page_is_preferred_to_a_link_to_an_api() -> None:
    stored = _load("dependabot")
    guessed = _guess(stored)
    (alert,) = _read(stored["firing"], guessed)
    assert alert.generator_url == "https://github.com/wolfy1339/pika-pack/security/dependabot/20"
    assert (alert.description or "").startswith("Versions of the package semver")


def test_a_severity_that_is_mapped_by_hand_has_the_usual_words() -> None:
    sample = parse_sample('{"title": "Disk full", "grade": "WARNING"}', nesting_limit=10)
    chosen = MappingChoices(paths={AlertField.SEVERITY: ['["grade"]']})
    mapping = parse_mapping_choices(chosen, sample)
    assert mapping.rules.severity_words["warning"] is Severity.LOW
    again = parse_mapping_choices(chosen, sample, mapping.with_rules(severity_words={}))
    assert again.rules.severity_words == {}


@pytest.mark.parametrize(("count", "shown"), [(0, 2), (1, 2), (2, 3), (6, 6)])
def test_there_is_room_for_another_joined_value(count: int, shown: int) -> None:
    join = ValueJoin(tuple((f"key{number}",) for number in range(count)))
    joins = {AlertField.FINGERPRINT.value: join} if count else {}
    choices: RuleChoices = build_rule_choices(replace(NO_RULES, joins=joins))
    assert len(choices.joins[AlertField.FINGERPRINT]) == shown
