"""Proposed mappings for known tools, saved unchanged on the page and with the command."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.tools import propose_mapping
from tests.support.accounts.people import alice, make_project, signed_in
from tests.support.alerts.integration_pages import address
from tests.support.alerts.scripts import script_of
from tests.support.alerts.senders import PAYLOADS
from tests.support.service.commands import operate
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.long]


def samples() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the bodies that are read with a mapping."""
    for file in sorted((PAYLOADS / "tools").glob("*.json")):
        value = json.loads(file.read_text(encoding="utf-8"))
        payload = value[0] if isinstance(value, list) else value
        if propose_mapping(Messages(firing=payload)).mapping.reads_fields:
            yield file, payload


def test_the_page_saves_its_proposal_unchanged(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = signed_in(gatebell, alice(gatebell))
    worker = script_of(gatebell, project, "alert_management_integrations")
    for number, (file, payload) in enumerate(samples()):
        page = browser.get(address(gatebell, project, "new"))
        found = submit(browser, page, form_to(page, "/recognize"), sample=json.dumps(payload))
        form = form_with(found, "type")
        made = submit(browser, found, form, name=f"Tool {number}")
        assert made.status_code == 302, (file.name, made.text)
        integration_id = worker.get()[-1]["id"]
        before = worker.get(f"/{integration_id}/mapping")
        assert before["mapping"] or before["rules"]["resolved_when"], file.name
        page = browser.get(address(gatebell, project, f"{integration_id}/configure"))
        saved = submit(browser, page, form_to(page, "/mapping#mapping"), do="save")
        assert saved.status_code == 302, (file.name, saved.text)
        assert worker.get(f"/{integration_id}/mapping") == before, file.name


def test_the_command_saves_its_proposal_unchanged(app: Flask, tmp_path: Path) -> None:
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")
    made = operate(app, "integrations", "create", "acme/shop", "--type", "http", "--name", "Tool")
    for file, _ in samples():
        found = operate(app, "integrations", "recognize", str(file))
        printed = tmp_path / "printed.json"
        printed.write_text(json.dumps(found), encoding="utf-8")
        for _ in range(2):
            command = ("integrations", "map", "acme/shop", str(made["id"]), str(printed))
            saved = operate(app, *command)
            assert saved["mapping"] == found["mapping"], file.name
            assert saved["rules"] == found["rules"], file.name
            printed.write_text(json.dumps(saved), encoding="utf-8")
