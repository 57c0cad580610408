"""Generated documents are current, and written documents are correct."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest
from flask import Flask

from domain.releases.schedule_document import build_schedule_document as releases_document
from tests.architecture.test_shape import LAYERS, modules
from tests.coverage.advisories import advisories
from tests.coverage.advisories import document as advisories_document
from tests.coverage.coverage_table import marks, statements
from tests.coverage.monitoring_tools import document as tools_document
from tests.coverage.permission_matrix import document as permissions_document
from tests.coverage.rfc_coverage import LEVELS, REASONS, Result, result_of, standards
from tests.coverage.summary import document as coverage_document
from web.commands import gatebell
from web.commands.documentation.command_reference import OUTPUT_DESCRIPTIONS, TOPICS
from web.commands.documentation.command_reference import (
    build_command_reference as commands_document,
)
from web.commands.documentation.operator_help import TEXTS
from web.settings.environment import Settings
from web.settings.sections import build_settings_reference as settings_document

ROOT = Path(__file__).parents[2]


def test_the_list_of_settings_is_fresh() -> None:
    written = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert written == settings_document(), "run `make docs`"


@pytest.mark.one_database("sqlite")
def test_the_permissions_of_roles_are_fresh(app: Flask) -> None:
    written = (ROOT / "docs" / "permissions.md").read_text(encoding="utf-8")
    assert written == permissions_document(app), "run `make docs`"


def test_the_reference_of_commands_is_fresh() -> None:
    written = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert written == commands_document(), "run `make docs`"


def test_every_command_belongs_to_one_topic() -> None:
    listed = [name for names in TOPICS.values() for name in names]
    assert sorted(listed) == gatebell.list_commands(click.Context(gatebell))


def test_described_outputs_belong_to_existing_commands() -> None:
    described = {f"#### gatebell {name}" for name in OUTPUT_DESCRIPTIONS if " " in name}
    alone = {f"### gatebell {name}" for name in OUTPUT_DESCRIPTIONS if " " not in name}
    assert described | alone <= set(commands_document().splitlines())


def test_help_for_operators_belongs_to_existing_commands() -> None:
    document = commands_document()
    assert [name for name, text in TEXTS.items() if text not in document] == []


@pytest.mark.spec("M2")
def test_the_release_schedule_is_fresh() -> None:
    written = (ROOT / "docs" / "releases.md").read_text(encoding="utf-8")
    assert written == releases_document(), "run `make docs`"


def test_the_summary_of_test_coverage_is_fresh() -> None:
    written = (ROOT / "docs" / "evidence" / "coverage.md").read_text(encoding="utf-8")
    fresh = coverage_document(statements(), marks(), standards(), marks("rfc"))
    assert written == fresh, "run `make docs`"


def test_the_list_of_advisories_is_fresh_and_each_has_a_test() -> None:
    known, shown = advisories(), marks("advisory")
    assert set(shown) == {each.id for each in known}
    written = (ROOT / "docs" / "evidence" / "advisories.md").read_text(encoding="utf-8")
    assert written == advisories_document(known, shown), "run `make docs`"


def test_the_table_of_monitoring_tools_is_fresh() -> None:
    written = (ROOT / "docs" / "evidence" / "monitoring-tools.md").read_text(encoding="utf-8")
    assert written == tools_document(), "run `make docs`"


def test_tests_name_existing_statements() -> None:
    assert set(marks()) <= {each.id for each in statements()}


def test_tests_name_existing_requirements() -> None:
    known = [each.id for standard in standards() for each in standard.requirements]
    assert len(known) == len(set(known))
    assert set(marks("rfc")) <= set(known)


def test_every_requirement_has_a_test_or_a_reason() -> None:
    shown = marks("rfc")
    for standard in standards():
        for each in standard.requirements:
            assert each.level in LEVELS, each.id
            assert not each.reason or each.reason.startswith(REASONS), each.id
            assert result_of(each, shown) is not Result.NOT_SHOWN, each.id


def test_every_setting_is_read_somewhere() -> None:
    unread = {each.name for each in fields(Settings)}
    declared = {ROOT / "web" / "settings" / name for name in ("reader.py", "table.py")}
    for file in (ROOT / "app.py", ROOT / "gunicorn.conf.py", *modules(*LAYERS)):
        text = file.read_text(encoding="utf-8")
        if file in declared or unread.isdisjoint(re.findall(r"\w+", text)):
            continue  # Parsing it would take most of the time.
        tree = ast.parse(text)
        unread -= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        unread -= {name for node in ast.walk(tree) for name in _got_by_name(node)}
    assert unread == set()


def _got_by_name(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Call(func=ast.Name(id="attrgetter"), args=[ast.Constant(value=str(name))]):
            yield name


def test_links_between_documents_are_not_broken() -> None:
    broken = {
        f"{document.name}: {target}#{anchor}"
        for document in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
        for target, anchor in _LINK.findall(document.read_text("utf-8"))
        if not _leads_somewhere(document.parent / target if target else document, anchor)
    }
    assert broken == set()


_LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)")


def _leads_somewhere(file: Path, anchor: str) -> bool:
    return file.exists() and (not anchor or anchor in _anchors(file.read_text("utf-8")))


def _anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as GitHub and GitLab write them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_every_decision_record_has_a_status_and_a_date_and_is_in_the_index() -> None:
    index = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    records = sorted((ROOT / "docs" / "adr").glob("0*.md"))
    rows = [line for line in index.splitlines() if line.startswith("| [")]
    assert rows == [_index_row(record) for record in records]


def _index_row(record: Path) -> str:
    found = re.match(
        r"# (\d+)\. (.+)\n\n"
        r"Status: (accepted|replaced by ADR \d+), (\d{4}-\d\d-\d\d)\.",
        record.read_text(encoding="utf-8"),
    )
    assert found, f"{record.name} has no number, title, status and date"
    number, title, status, made = found.groups()
    assert int(number) == int(record.name[:4]), record.name
    return f"| [{number}]({record.name}) | {title} | {status} | {made} |"
