"""Tests rules of the code's structure that import contracts and linters cannot check."""

import ast
import re
import subprocess
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path

import pytest
from flask import Flask

from domain.alerts.formats.registry import INTEGRATION_TYPES
from domain.core.database.locks import AdvisoryLock
from tests.architecture.measures import Checkout, comparisons_of_types
from web.pages.list_query import build_page_links, get_list_query

ROOT = Path(__file__).parents[2]
LAYERS = ("blueprints", "domain", "forms", "models", "web")

#: Modules that may end a transaction: one module within requests, and work outside of requests.
COMMITTERS = {
    "domain/core/database/locks.py",
    "web/http/transactions.py",  # It also runs what follows the transaction of the request.
    "web/commands/execution.py",
    "web/jobs/alert_changes.py",
    "web/jobs/mail.py",
    "web/jobs/retention.py",
    "web/jobs/repositories.py",
    "web/database/sqlite.py",  # It configures the driver.
}
EMPTY_NAMES = {
    "utils",
    "util",
    "helpers",
    "helper",
    "manager",
    "managers",
    "common",
    "misc",
    "data",
}
MOST_LINES_OF_A_FILE = 600
MOST_LINES_OF_A_VIEW = 25
#: Modules of blueprints without views: steps of hot paths, a collector and the Git backend.
STEPS_OF_VIEWS = {
    "blueprints/alerts/receivers.py",
    "blueprints/git/http_backend.py",
    "blueprints/health/notification_metrics.py",
    "blueprints/heartbeats/pings.py",
}


@cache
def files_of_the_project() -> tuple[Path, ...]:
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(ROOT / name for name in names.splitlines() if (ROOT / name).is_file())


def modules(*folders: str) -> Iterator[Path]:
    for file in files_of_the_project():
        if file.suffix == ".py" and file.relative_to(ROOT).parts[0] in folders:
            yield file


def texts(*folders: str) -> Iterator[tuple[Path, str]]:
    for file in modules(*folders):
        yield file, file.read_text(encoding="utf-8")


def path_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def test_the_only_modules_at_the_root_are_the_app_and_its_entry_points() -> None:
    # import-linter does not see modules at the root: more of them would escape the contracts.
    starts = {"wsgi.py", "gatebell.py", "gunicorn.conf.py"}
    assert {file.name for file in ROOT.glob("*.py")} == {"app.py", *starts}


def test_every_package_at_the_root_is_known_to_the_import_contracts() -> None:
    packages = {file.relative_to(ROOT).parts[0] for file in ROOT.glob("[!.]*/**/__init__.py")}
    assert packages - {"tests"} == set(LAYERS)


@pytest.mark.parametrize("package", ["domain", "domain/alerts"])
def test_packages_with_separate_import_contracts_contain_no_code(package: str) -> None:
    # Importing a part also runs the package, which is no edge in the graph of imports.
    body = ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8")).body
    assert [type(node) for node in body] in ([], [ast.Expr])


def test_no_file_is_too_long() -> None:
    long = {
        path_of(file): count
        for file in modules(*LAYERS, "tests")
        if (count := len(file.read_text(encoding="utf-8").splitlines())) > MOST_LINES_OF_A_FILE
    }
    assert long == {}


def test_code_does_not_compare_integration_types() -> None:
    assert comparisons_of_types(Checkout(ROOT)) == []
    template = re.compile(r"type(\.name)? *[!=]= *\"|equalto")
    named = {each.name for each in INTEGRATION_TYPES}
    assert [
        line
        for file in (ROOT / "templates").rglob("*.html")
        for line in file.read_text(encoding="utf-8").splitlines()
        if template.search(line) and any(f'"{name}"' in line for name in named)
    ] == []


def test_files_have_descriptive_names() -> None:
    named = {path_of(file) for file in modules(*LAYERS, "tests") if file.stem in EMPTY_NAMES}
    assert named == set()
    # Tools and readers take such a file for a test.
    assert {path_of(file) for file in modules(*LAYERS) if file.name.startswith("test_")} == set()


def test_views_are_short() -> None:
    long = {
        f"{path_of(file)}:{node.name}": lines
        for file in modules("blueprints")
        if path_of(file) not in STEPS_OF_VIEWS
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > MOST_LINES_OF_A_VIEW
    }
    assert long == {}


def test_a_transaction_is_ended_in_one_place() -> None:
    ending = {
        path_of(file)
        for file, text in texts(*LAYERS)
        if ".commit" in text  # Parsing all files would take seconds.
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr == "commit"
    }
    assert ending
    assert ending <= COMMITTERS


def test_hooks_of_all_requests_are_registered_in_one_place() -> None:
    hook = re.compile(
        r"\bapp\.(before_request|after_request|teardown_request|teardown_appcontext)\("
        r"|\bapp\.wsgi_app = |\bapp\.(before|after|teardown)_request_funcs\.setdefault\("
    )
    found = [path_of(file) for file, text in texts("web", "blueprints") if hook.search(text)]
    assert found == ["web/http/lifecycle.py"]
    assert not hook.search((ROOT / "app.py").read_text(encoding="utf-8"))


def test_the_code_has_no_reminders() -> None:
    marks = {"TO" + "DO", "FIX" + "ME", "X" + "XX"}
    found = {
        f"{path_of(file)}: {mark}"
        for file in modules(*LAYERS, "tests", "migrations")
        for mark in marks
        if mark in file.read_text(encoding="utf-8")
    }
    assert found == set()


#: Functions that return a part of a list, and functions that reject unknown parameters.
LIST_ANSWERS = {build_page_links.__name__}
LIST_QUERIES = {get_list_query.__name__}


def test_every_list_rejects_unknown_parameters() -> None:
    lists, careless = set(), set()
    for file, text in texts("blueprints"):
        if not any(answer in text for answer in LIST_ANSWERS):
            continue
        called = {
            node.func.id
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        if called & LIST_ANSWERS:
            lists.add(path_of(file))
            if not called & LIST_QUERIES:
                careless.add(path_of(file))
    assert lists
    assert careless == set()


def test_all_advisory_locks_are_in_one_table() -> None:
    numbers = [lock.value for lock in AdvisoryLock.__members__.values()]
    assert len(set(numbers)) == len(AdvisoryLock.__members__)
    for file in (*ROOT.glob("domain/**/*.py"), *ROOT.glob("web/**/*.py")):
        source = file.read_text(encoding="utf-8")
        if file.name == "locks.py":
            continue
        assert not re.search(r"7_?240_?118_?\d{3}", source), file
        for taken in re.findall(r"pg_\w*advisory\w*lock\(([^)]*)", source):
            assert taken.startswith(("AdvisoryLock.", "hashtext(", ":key", "%s")), (file, taken)


def enums() -> Iterator[type[Enum]]:
    """Return the enumerations of all imported modules, including enumerations without members."""
    waiting = list(Enum.__subclasses__())
    while waiting:
        found = waiting.pop()
        waiting += found.__subclasses__()
        if found.__module__.partition(".")[0] in LAYERS:
            yield found


@pytest.mark.one_database("sqlite")
def test_no_member_of_an_enumeration_is_an_empty_tuple(app: Flask) -> None:
    # Python 3.11.2 of Debian 12 creates another object for such a member.
    del app  # The app imports all modules.
    found = list(enums())
    assert len(found) > 20
    empty = [str(each) for one in found for each in one if each.value == () or _is_bare(each)]
    assert empty == []


def _is_bare(member: Enum) -> bool:
    return type(member.value) is object


#: A group repeated possessively, without an alternative that never matches at its end.
_POSSESSIVE_GROUP = re.compile(r"(?<!\|\(\?!\))\)(?:[*+?]|\{[0-9,]+\})\+|\(\?>")


def test_possessive_groups_end_with_an_alternative_that_never_matches() -> None:
    # domain/releases/checker/tokens.py has the reason.
    found = {
        f"{path_of(file)}: {match[0]}"
        for file, text in texts(*LAYERS)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for match in _POSSESSIVE_GROUP.finditer(node.value)
    }
    assert found == set()
