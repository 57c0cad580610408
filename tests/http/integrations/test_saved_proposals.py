"""Proposed mappings for known tools, saved unchanged on the page and with the command."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from tests.support.accounts.people import alice, make_project, signed_in
from tests.support.alerts.integration_pages import address
from tests.support.alerts.scripts import script_of
from tests.support.alerts.tool_messages import MODULES, load_messages
from tests.support.service.commands import operate
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.long]


def samples() -> Iterator[tuple[str, str]]:
    """Yield the tools whose messages are read with a mapping, and their first messages."""
    for module in MODULES:
        messages = load_messages(module)
        if messages.recognize().proposal.mapping.reads_fields:
            yield messages.tool, messages.sample


def test_the_page_saves_its_proposal_unchanged(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = signed_in(gatebell, alice(gatebell))
    worker = script_of(gatebell, project, "alert_management_integrations")
    for number, (tool, sample) in enumerate(samples()):
        page = browser.get(address(gatebell, project, "new"))
        found = submit(browser, page, form_to(page, "/new#proposal"), do="recognize", sample=sample)
        form = form_with(found, "type")
        made = submit(browser, found, form, name=f"Tool {number}")
        assert made.status_code == 302, (tool, made.text)
        integration_id = worker.get()[-1]["id"]
        before = worker.get(f"/{integration_id}/mapping")
        assert before["mapping"] or before["rules"]["resolved_when"], tool
        page = browser.get(address(gatebell, project, f"{integration_id}/configure"))
        saved = submit(browser, page, form_to(page, "/mapping#mapping"), do="save")
        assert saved.status_code == 302, (tool, saved.text)
        assert worker.get(f"/{integration_id}/mapping") == before, tool


def test_the_command_saves_its_proposal_unchanged(app: Flask, tmp_path: Path) -> None:
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")
    made = operate(app, "integrations", "create", "acme/shop", "--type", "http", "--name", "Tool")
    printed = tmp_path / "printed.json"
    for tool, sample in samples():
        printed.write_text(sample, encoding="utf-8")
        found = operate(app, "integrations", "recognize", str(printed))
        printed.write_text(json.dumps(found), encoding="utf-8")
        for _ in range(2):
            command = ("integrations", "map", "acme/shop", str(made["id"]), str(printed))
            saved = operate(app, *command)
            assert saved["mapping"] == found["mapping"], tool
            assert saved["rules"] == found["rules"], tool
            printed.write_text(json.dumps(saved), encoding="utf-8")
