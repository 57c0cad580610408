"""Custom mappings: chosen from a sample on a page, previewed, and applied to deliveries."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from sqlalchemy import update

from domain.access.roles import Role
from domain.alerts.parsing.severity import USUAL_SEVERITY_WORDS
from domain.alerts.recognition.state_words import ALL_CLEAR_WORDS
from models import Integration
from tests.support.alerts.integration_pages import opened, words
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.stored import (
    change,
    list_stored_alerts,
    list_stored_deliveries,
    list_stored_integrations,
)
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings
from tests.support.wire.html_forms import HtmlForm, form_to, form_with, submit

pytestmark = pytest.mark.one_database("postgres")

SAMPLE: dict[str, Any] = {
    "event": {"name": "Disk full", "level": "High", "text": ""},
    "machines": [{"fqdn": "db-1"}, {"fqdn": "db-2"}],
    "recovered_at": None,
    "id": 17,
}
TITLE, LEVEL, TEXT = '["event", "name"]', '["event", "level"]', '["event", "text"]'
CHOSEN: dict[str, list[str]] = {
    "map_title": [TITLE, ""],
    "map_severity": [LEVEL, ""],
    "map_end_time": ['["recovered_at"]', ""],
    "map_hosts": ['["machines", 0, "fqdn"]', ""],
    "map_fingerprint": ['["id"]', ""],
    "map_description": [TEXT, TITLE],
    "join_title": ["", ""],
}
STORED = {
    "title": [["event", "name"]],
    "severity": [["event", "level"]],
    "end_time": [["recovered_at"]],
    "hosts": [["machines", 0, "fqdn"]],
    "fingerprint": [["id"]],
    "description": [["event", "text"], ["event", "name"]],
}


class Editor:
    """A browser on the mapping page of an integration."""

    def __init__(self, gatebell: LiveGatebell, endpoint: Endpoint) -> None:
        self.gatebell, self.endpoint = gatebell, endpoint
        self.browser, self.page = opened(gatebell, endpoint, "{id}/configure")

    @property
    def form(self) -> HtmlForm:
        return form_with(self.page, "sample")

    def press(self, button: str, **values: str | list[str]) -> requests.Response:
        """Fill in the form and press a button; keep the page that follows."""
        answer = submit(self.browser, self.page, self.form, do=button, **values)
        if answer.status_code == 302:
            answer = self.browser.get(self.gatebell.url + answer.headers["Location"])
        self.page = answer
        return answer

    def save(self) -> None:
        """Map the sample and save the mapping."""
        self.press("read", sample=json.dumps(SAMPLE))
        assert "Mapping saved" in self.press("save", **CHOSEN).text

    def saved(self) -> tuple[Any, Any]:
        """Return the sample and the mapping from the database without usual severity words."""
        (row,) = list_stored_integrations(self.gatebell, self.endpoint.project)
        mapping = json.loads(json.dumps(row.mapping))
        words = (mapping or {}).get("rules", {}).pop("severity_words", {})
        assert set(words) <= {*USUAL_SEVERITY_WORDS, *ALL_CLEAR_WORDS}
        if mapping and mapping.get("rules") == {}:
            del mapping["rules"]
        return row.sample, mapping or None


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("H8", "I18")
def test_a_sample_is_read_mapped_and_saved(gatebell: LiveGatebell) -> None:
    editor = Editor(gatebell, connect(gatebell))
    read = editor.press("read", sample=json.dumps(SAMPLE))
    assert "event.name = “Disk full”" in read.text
    assert "machines[1].fqdn = “db-2”" in read.text
    assert "recovered_at = null" in read.text
    seen = words(read.text)
    for part in (
        '"event" : { "name" : "Disk full" , "level" : "High" , "text" : "" }, "machines"',
        '"machines" : [ 2 items { "fqdn" : "db-1" }, { "fqdn" : "db-2" } ], "rec',
        '"recovered_at" : null , "id" : 17',
    ):
        assert part in seen
    for path in ("title", "[]", '["no", "such"]', "[[", '["event"]', "{}"):
        editor.press("read", sample=json.dumps(SAMPLE))
        refused = editor.press("save", map_title=["", path])
        assert refused.status_code == 422, path
        assert "Title: choose a field of the sample." in refused.text
    editor.press("read", sample=json.dumps(SAMPLE))
    editor.press("save", **CHOSEN)
    assert editor.saved() == (json.dumps(SAMPLE), STORED)
    assert 'value="[&#34;event&#34;, &#34;name&#34;]" selected' in editor.page.text
    assert dict(editor.form.fields)["map_title"] == TITLE


@pytest.mark.long
def test_a_deep_or_large_sample_is_shown(gatebell: LiveGatebell) -> None:
    editor = Editor(gatebell, connect(gatebell))
    for sample in ('{"a":' * 99 + "{}" + "}" * 99, json.dumps({"many": list(range(9_000))})):
        page = editor.press("read", sample=sample)
        assert page.status_code == 200
        assert "Sample as JSON" in page.text
    assert editor.press("read", sample="{}").status_code == 200


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("H8", "I5", "I18")
def test_deliveries_are_read_by_the_saved_mapping(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    Editor(gatebell, endpoint).save()
    assert endpoint.accepted(**SAMPLE) == {"iid": 1, "title": "Disk full"}
    assert endpoint.accepted(**SAMPLE, title="not read", severity="info")["iid"] == 1
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.severity, alert.hosts, alert.events) == (1, "db-1", 2)
    assert (alert.status, alert.description) == ("triggered", "Disk full")
    over = {**SAMPLE, "recovered_at": "2026-11-21T08:00:00Z"}
    assert endpoint.accepted(**over)["iid"] == 1
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert alert.status == "resolved"
    # The recovery is before the first report, so the alert ends at its start.
    assert alert.ended_at == alert.started_at


@pytest.mark.long
@pytest.mark.spec("H8")
def test_test_alerts_use_the_saved_mapping(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    Editor(gatebell, endpoint).save()
    browser, page = opened(gatebell, endpoint, "{id}/test")
    form = form_with(page, "payload")
    # The page offers the sample, which the mapping can read.
    assert json.loads(form.value("payload")) == SAMPLE
    payload = json.dumps({**SAMPLE, "runbook": "https://r.example"})
    result = submit(browser, page, form, payload=payload)
    assert "Fingerprint source the id field" in words(result.text)
    shown = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    assert "reported as “High”" in words(shown.text)


@pytest.mark.long
@pytest.mark.spec("H8")
def test_another_sample_has_to_be_mapped_again(gatebell: LiveGatebell) -> None:
    editor = Editor(gatebell, connect(gatebell))
    editor.save()
    # A sample that differs only in its layout keeps its mapping.
    editor.press("save", sample=json.dumps(SAMPLE, indent=4, sort_keys=True))
    assert "Mapping saved" in editor.page.text
    assert editor.saved()[1] == STORED
    editor.press("save", sample=json.dumps(SAMPLE))
    other = {"summary": "Disk full", "event": SAMPLE["event"]}
    told = editor.press("save", sample=json.dumps(other), **CHOSEN)
    assert "This is a new sample: check the proposed source fields below." in told.text
    assert "was made for another sample" in told.text
    assert editor.saved() == (json.dumps(SAMPLE), STORED)
    none = ["", ""]
    editor.press("save", map_title=['["summary"]', ""], map_description=none, map_severity=none)
    sample, mapping = editor.saved()
    assert (sample, mapping["title"]) == (json.dumps(other), [["summary"]])
    assert set(mapping) == {"title", "fingerprint", "rules"}
    # The proposed rule for recoveries is a part of the form.
    (rule,) = mapping["rules"]["resolved_when"]
    assert rule["path"] == ["event", "level"]


@pytest.mark.long
@pytest.mark.spec("H8")
def test_an_invalid_sample_is_rejected_with_a_message(gatebell: LiveGatebell) -> None:
    editor = Editor(gatebell, connect(gatebell))
    for sample, sentence in {
        "": "Paste a sample payload.",
        "{": "The sample is not JSON",
        "[]": "The sample is an array; a JSON object is expected.",
        "null": "The sample is null",
        '{"a": NaN}': "NaN is not a JSON number",
        '{"a":' * 101 + "1" + "}" * 101: "nested deeper than 100 levels",
        '{"a": "' + "x" * 65_536 + '"}': "at most 64 KiB",
    }.items():
        refused = editor.press("save", sample=sample)
        assert refused.status_code == 422, sample
        assert sentence in refused.text
    assert editor.saved() == (None, None)


@pytest.mark.spec("H8")
def test_the_preview_shows_the_alert_that_the_sample_would_become(gatebell: LiveGatebell) -> None:
    editor = Editor(gatebell, connect(gatebell))
    editor.press("read", sample=json.dumps({**SAMPLE, "recovered_at": "soon"}))
    address = editor.page.url.partition("#")[0] + "/preview"
    # A rule decides whether the alert is over, regardless of the end time.
    filled = editor.form.filled(**CHOSEN, resolved_path="", resolved_words="")
    preview = words(editor.browser.post(address, data=filled).text)
    assert preview.startswith("Disk full High Triggered ")
    assert "Grouped by the id field" in preview
    assert "recovered_at could not be read: “soon”" in preview
    assert "<html" not in editor.browser.post(address, data=filled).text
    broken = editor.browser.post(address, data=editor.form.filled(sample="{"))
    assert (broken.status_code, "The sample is not JSON" in broken.text) == (422, True)
    assert editor.saved() == (None, None)


def test_words_that_the_fingerprint_ignores_are_chosen(gatebell: LiveGatebell) -> None:
    editor = Editor(gatebell, connect(gatebell))
    editor.save()
    editor.press("save", ignored_words="Down, up ,")
    assert editor.saved()[1]["rules"]["ignored_words"] == ["down", "up"]
    editor.press("save")
    assert editor.saved()[1]["rules"]["ignored_words"] == ["down", "up"]
    editor.press("save", ignored_words="")
    assert "ignored_words" not in editor.saved()[1].get("rules", {})
    refused = editor.press("save", ignored_words="no longer")
    assert (refused.status_code, "An ignored word must have" in refused.text) == (422, True)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("H8", "I8", "I18")
def test_a_draft_is_tried_on_the_last_deliveries(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for number, recovered in ((1, None), (2, None), (1, "2026-11-21T08:00:00Z")):
        endpoint.send(**{**SAMPLE, "id": number, "recovered_at": recovered})
    endpoint.post(b"{")
    editor = Editor(gatebell, endpoint)
    editor.press("read", sample=json.dumps(SAMPLE))
    tried = words(editor.press("try", **CHOSEN).text)
    assert "3 of 3 deliveries would be parsed differently." in tried
    assert "In the last 3 deliveries, 0 reports would have joined 2 alerts" in tried
    assert "1 report would have resolved an alert" in tried
    assert "With the current mapping, they open 3 alerts." in tried
    assert "Disk full now: New: Alert High now: critical" in tried
    assert "2026-11-21 08:00:00 UTC now: still firing" in tried
    assert editor.saved() == (None, None)
    editor.press("save")
    assert editor.saved()[1] == STORED
    assert "0 of 3 deliveries would be parsed differently." in words(editor.press("try").text)


@pytest.mark.long
@pytest.mark.spec("H8")
def test_a_delivery_can_be_used_as_the_sample(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.send(**SAMPLE)
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    editor = Editor(gatebell, endpoint)
    editor.page = editor.browser.get(f"{editor.page.url}?sample={delivery.id}")
    assert "This is a new sample" in editor.page.text
    assert json.loads(editor.form.value("sample")) == SAMPLE
    editor.press("save", **CHOSEN)
    assert editor.saved()[1] == STORED
    other = connect(gatebell)
    foreign = Editor(gatebell, other)
    assert foreign.browser.get(f"{foreign.page.url}?sample={delivery.id}").status_code == 404


@pytest.mark.both_databases
@pytest.mark.spec("H8")
def test_a_mapping_can_be_removed(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    editor = Editor(gatebell, endpoint)
    editor.save()
    removal = form_to(editor.page, "/mapping/remove")
    assert submit(editor.browser, editor.page, removal).status_code == 302
    assert editor.saved() == (None, None)
    assert endpoint.accepted(**SAMPLE)["title"] == "New: Alert"


def test_the_text_of_a_sample_is_escaped(gatebell: LiveGatebell) -> None:
    editor = Editor(gatebell, connect(gatebell))
    nasty = '</textarea></option><script>alert("1")</script>'
    page = editor.press("read", sample=json.dumps({nasty: nasty, "title": nasty}))
    assert page.status_code == 200
    assert "<script>alert" not in page.text


@pytest.mark.long
@pytest.mark.spec("H7", "H9")
def test_only_an_http_endpoint_is_mapped(gatebell: LiveGatebell) -> None:
    metrics = connect(gatebell, kind="prometheus")
    browser, page = opened(gatebell, metrics, "{id}/configure")
    assert "Custom mapping" not in page.text
    token = form_with(page, "name").value("csrf_token")
    for action in ("mapping", "mapping/preview"):
        address = page.url.replace("configure", action)
        data = {"csrf_token": token, "sample": "{}"}
        assert browser.post(address, data=data).status_code == 404
    _, refused = opened(gatebell, connect(gatebell), "{id}/configure", Role.DEVELOPER)
    assert refused.status_code == 403


def test_an_unknown_field_in_a_mapping_loses_no_alert(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    mine = update(Integration).where(Integration.id == endpoint.id)
    change(gatebell, mine.values(mapping={"colour": [["a"]]}))
    assert endpoint.accepted(title="Kept")["title"] == "Kept"
    assert opened(gatebell, endpoint, "{id}/configure")[1].status_code == 200


@pytest.fixture
def free(live_sqlite: LiveGatebell) -> Iterator[LiveGatebell]:
    with changed_settings(live_sqlite, tier="free") as live:
        yield live


@pytest.mark.long
@pytest.mark.spec("H9")
def test_the_free_tier_has_one_endpoint_of_a_type_and_no_mapping(free: LiveGatebell) -> None:
    endpoint = connect(free)
    browser, page = opened(free, endpoint, "new")
    refused = submit(browser, page, form_with(page, "name"), type="http", name="Two", active="y")
    assert refused.status_code == 422
    assert "allows only one HTTP Endpoint" in refused.text
    mine = update(Integration).where(Integration.id == endpoint.id)
    change(free, mine.values(mapping={"title": [["event"]]}))
    browser, page = opened(free, endpoint, "{id}/configure")
    assert "Mappings require the Premium or Ultimate tier" in page.text
    token = form_with(page, "name").value("csrf_token")
    answer = browser.post(page.url.replace("configure", "mapping"), data={"csrf_token": token})
    assert answer.status_code == 403
    # A mapping from another tier stays in force, so that alerts are still read.
    assert endpoint.accepted(event="Disk full")["title"] == "Disk full"
