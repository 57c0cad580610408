"""Import plans from exports of the Grafana OnCall API."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.core.errors import InvalidError
from domain.paging.importing.export_files import ExportDocument, read_documents
from domain.paging.importing.grafana_oncall import build_grafana_oncall_import_plan
from domain.paging.importing.import_plan import ImportPlan
from domain.paging.on_call.schedule_plans import Cadence, Restriction, TurnUnit

EXPORT = Path(__file__).parents[3] / "payloads" / "exports" / "grafana_oncall" / "export.json"
DOCUMENT = Path(__file__).parents[4] / "docs" / "moving-from-other-tools.md"
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def plan() -> ImportPlan:
    return build_grafana_oncall_import_plan(read_documents(EXPORT), now=NOW)


def test_users_who_share_a_turn_get_rotations_in_the_same_layer(plan: ImportPlan) -> None:
    (schedule,) = plan.schedules
    first, second, office = schedule.rotations
    # The second group of users begins, because of the start index in the export.
    assert (first.users, second.users) == (("U3", "U1"), ("U3", "U2"))
    assert first.layer == second.layer == 1
    assert first.cadence == Cadence(unit=TurnUnit.WEEKS, every=1, at=time(9), weekdays=(0,))
    assert first.restrictions == ()
    assert office.layer == 2
    assert office.restrictions == (
        Restriction(start=time(9), end=time(17), weekdays=(0, 1, 2, 3, 4)),
    )
    # Shifts on weekdays change with the week, which begins on Sunday.
    assert office.cadence.weekdays == (6,)
    assert office.starts_at == datetime(2026, 1, 4)  # noqa: DTZ001 - a wall time
    (override,) = schedule.overrides
    assert override.user == "U3"
    assert override.ends_at - override.starts_at == timedelta(days=1)


def test_a_chain_becomes_a_policy_with_cumulative_delays(plan: ImportPlan) -> None:
    chain, quiet = plan.policies
    assert [(each.after, each.users, each.schedules) for each in chain.steps] == [
        (timedelta(), (), ("S1",)),
        (timedelta(minutes=5), ("U1", "U2"), ()),
    ]
    assert (chain.repeats, chain.pause) == (5, timedelta(minutes=15))
    assert (chain.is_default, quiet.is_default) == (True, False)
    assert quiet.steps == ()


def test_users_who_are_notified_in_turn_become_a_round_robin() -> None:
    text = EXPORT.read_text(encoding="utf-8")
    changed = text.replace('"persons_to_notify"', '"persons_to_notify_next_each_time"')
    document = ExportDocument(name="export.json", value=json.loads(changed))
    chain = build_grafana_oncall_import_plan([document], now=NOW).policies[0]
    assert [(each.users, each.takes_turns) for each in chain.steps] == [
        ((), False),
        (("U1", "U2"), True),
    ]
    assert chain.notes == ()


def test_objects_that_cannot_be_imported_are_listed_with_reasons(plan: ImportPlan) -> None:
    found = {(each.kind, each.name): each.reason for each in plan.left_out}
    assert "monthly" in found["rotation", "Shop primary: First of the month"]
    assert "with gaps" in found["rotation", "Shop primary: Every other week"]
    assert "calendar.example" in found["schedule", "From a calendar"]
    assert "webhook to the project" in found["step", "Shop chain: step 4"]
    assert "Add a route" in found["route", "Alertmanager: us-(east|west)"]
    assert "does not receive alerts" in found["integration", "Mail"]
    assert "webhooks to the project" in found["webhooks", "1 in total"]
    assert [(each.name, each.type) for each in plan.integrations] == [
        ("Alertmanager", PROMETHEUS),
        ("Deploys", HTTP),
    ]


def test_lists_in_separate_files_are_imported() -> None:
    documents = [
        ExportDocument("users.json", [{"id": "U1", "username": "alice"}]),
        ExportDocument("users-2.json", {"results": [{"id": "U2", "email": "bob@example.com"}]}),
    ]
    plan = build_grafana_oncall_import_plan(documents, now=NOW)
    assert [each.username for each in plan.users] == ["alice", "bob"]


class _OnCall(BaseHTTPRequestHandler):
    """The API with pages of two objects; the page after the last one is not found."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        entities = json.loads(EXPORT.read_text())[Path(url.path).name]["results"]
        end = 2 * int(parse_qs(url.query)["page"][0])
        found = entities[end - 2 : end]
        is_known = self.headers["Authorization"] == "key" and bool(found or end == 2)
        self.send_response(200 if is_known else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"results": found}).encode())

    def log_message(self, *_arguments: object) -> None:
        """Do not log."""


@pytest.fixture
def on_call_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _OnCall) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.long
def test_the_commands_of_the_document_export_everything(
    on_call_url: str, tmp_path: Path, plan: ImportPlan
) -> None:
    found = re.search(r"```sh\n(mkdir .*?)gatebell import", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None
    environment = {"PATH": "/usr/bin:/bin", "ONCALL_URL": on_call_url, "ONCALL_API_KEY": "key"}
    subprocess.run(["/bin/bash", "-c", found[1]], cwd=tmp_path, env=environment, check=True)
    exported = build_grafana_oncall_import_plan(read_documents(tmp_path / "export"), now=NOW)
    assert (exported.users, exported.schedules) == (plan.users, plan.schedules)
    assert (exported.policies, exported.integrations) == (plan.policies, plan.integrations)


def shift(**given: Any) -> Mapping[str, Any]:
    usual = {"id": "O1", "type": "recurrent_event", "start": "2026-01-05T09:00:00"}
    return {**usual, "duration": 3600, "frequency": "daily", "users": ["U1"], **given}


def rotations_of(**given: Any) -> tuple[int, str]:
    """Return the number of rotations for a shift, and the reasons of omissions."""
    schedule = {"id": "S1", "name": "s", "type": "calendar", "shifts": ["O1"]}
    value = {"schedules": [schedule], "on_call_shifts": [shift(**given)]}
    plan = build_grafana_oncall_import_plan([ExportDocument("export.json", value)], now=NOW)
    return len(plan.schedules[0].rotations), " ".join(each.reason for each in plan.left_out)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"until": "2026-05-01T00:00:00"}, "The shift has ended."),
        ({"duration": 0}, "no duration"),
        ({"duration": 90_000}, "overlap"),
        ({"frequency": "hourly", "duration": 1800}, "with gaps"),
        ({"users": []}, "no users"),
        ({"type": "rolling_users", "rolling_users": [[]]}, "no users"),
        ({"start": "0001-01-01T00:00:00", "time_zone": "Asia/Tokyo"}, "out of range"),
        ({"duration": 10**30}, "The shift is missing"),
        ({"start": "x"}, "unexpected format"),
    ],
)
def test_a_shift_without_an_equivalent_is_listed_with_a_reason(
    given: dict[str, Any], words: str
) -> None:
    count, reasons = rotations_of(**given)
    assert count == 0
    assert words in reasons


def test_an_ordinary_shift_is_imported() -> None:
    assert rotations_of() == (1, "")


@pytest.mark.parametrize("value", [None, [], "x", 1, {}, {"id": []}, {"id": "a", "shifts": "x"}])
def test_malformed_objects_are_omitted_without_an_error(value: object) -> None:
    kinds = ("users", "teams", "schedules", "on_call_shifts", "escalation_chains")
    others = ("escalation_policies", "integrations", "routes")
    everything = {kind: [value] for kind in (*kinds, *others)}
    build_grafana_oncall_import_plan([ExportDocument("export.json", everything)], now=NOW)


def test_other_files_are_rejected() -> None:
    with pytest.raises(InvalidError, match="not a Grafana OnCall export"):
        build_grafana_oncall_import_plan([ExportDocument("a.json", {"data": []})], now=NOW)
