"""Tests that each kind of process loads only necessary modules, to save memory and time.

The lists are exact, so that a new import is noticed. In this case, decide whether these processes
need the module, or whether it should be imported at its first use.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from tests.support.service.live import NewService, running

_ROOT = Path(__file__).parents[3]
#: Code that writes a process's modules with their files to a file at its end.
_LISTING = """
import atexit, json, runpy, sys
def write():
    files = {name: getattr(each, "__file__", None) for name, each in sys.modules.items()}
    with open(PATH, "w") as out:
        json.dump(files, out)
atexit.register(write)
"""
_OURS = frozenset({"app", "blueprints", "domain", "forms", "models", "web", "wsgi"})
#: Modules that help to find installed packages; the product does not import them.
_OF_INSTALLATION = frozenset({"_cffi_backend", "_distutils_hack"})

_PROGRAM = frozenset({"blinker", "click", "flask", "itsdangerous", "jinja2"}) | {
    *("markupsafe", "werkzeug"),
}
#: Packages that each command with an action needs.
_ACTIONS = _PROGRAM | {
    *("annotated_types", "cryptography", "flask_cors", "flask_login", "flask_sqlalchemy"),
    *("orjson", "pydantic", "pydantic_core", "sqlalchemy", "standardwebhooks"),
    *("typing_extensions", "typing_inspection"),
}
_ALERTS = _ACTIONS | {"_argon2_cffi_bindings", "argon2", "dateutil", "re2"}


class Kind(NamedTuple):
    """Describes the modules of a kind of process."""

    code: str
    #: Exact set of third-party packages.
    packages: frozenset[str]
    #: Own packages of which no module may be loaded.
    without: tuple[str, ...]
    #: Maximum number of own modules.
    most: int


def _command(*arguments: str) -> str:
    given = ["gatebell", *arguments]
    return f'sys.argv[:] = {given!r}; runpy.run_path("gatebell.py", run_name="__main__")'


_NO_PAGES = ("blueprints", "forms", "web.access", "web.api", "web.metrics", "web.pages")
_KINDS: Mapping[str, Kind] = {
    "help": Kind(_command("--help"), _PROGRAM, ("domain", "models", "web.settings"), 10),
    "a command for accounts": Kind(
        _command("users", "unlock", "nobody"),
        _ALERTS | {"joserfc", "pyotp"},
        (
            *_NO_PAGES,
            "domain.paging.on_call",
            "domain.paging.contacts",
            "web.outgoing",
            "web.server",
        ),
        290,
    ),
    "a command for silences": Kind(
        _command("silences", "list", "acme/shop"),
        _ALERTS,
        (*_NO_PAGES, "domain.oauth", "domain.accounts.lifecycle", "web.outgoing", "web.server"),
        200,
    ),
    "the supervisor": Kind(
        "import web.server.serve",
        frozenset({"orjson"}),
        (*_NO_PAGES, "models", "web.database", "web.jobs"),
        40,
    ),
    "the worker": Kind(
        "import web.jobs.worker",
        (_ALERTS - _PROGRAM - {"flask_cors", "flask_login", "flask_sqlalchemy"})
        | {"click", "itsdangerous"}
        | {"authlib", "cronsim", "gunicorn", "http_ece", "joserfc", "pyotp"}
        | {"urllib3"},
        (*_NO_PAGES, "web.commands", "web.http", "web.services"),
        475,
    ),
}


#: Kinds that `make test` skips, since the other kinds represent them.
_LONG = ("a command for accounts", "the worker")


@pytest.mark.one_database("sqlite")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] if name in _LONG else []) for name in _KINDS],
)
def test_a_process_loads_only_necessary_modules(name: str, tmp_path: Path) -> None:
    kind, listed = _KINDS[name], tmp_path / "modules.json"
    done = subprocess.run(
        [sys.executable, "-c", f"PATH = {str(listed)!r}\n{_LISTING}\n{kind.code}"],
        cwd=_ROOT,
        env={"INSTANCE_PATH": str(tmp_path), "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    files: dict[str, str | None] = json.loads(listed.read_text())
    installed = {each.partition(".")[0] for each, file in files.items() if _is_installed(file)}
    ours = [each for each in files if each.partition(".")[0] in _OURS]
    assert installed - _OF_INSTALLATION == kind.packages
    assert [each for each in ours if _is_below(each, kind.without)] == []
    assert len(ours) <= kind.most


def _is_installed(file: str | None) -> bool:
    return file is not None and "site-packages" in file


def _is_below(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in packages)


#: Pages and endpoints that users and programs request most.
_USUAL = (
    *("/", "/users/sign_in", "/users/password/new", "/help", "/help/releases", "/healthz"),
    *("/readyz", "/metrics", "/.well-known/openid-configuration", "/oauth/token/info"),
    *("/api/v4/user", "/api/v4/projects", "/api/v4/version"),
)
#: A small module that only the library itself should import.
_OF_LIBRARIES = {"pydantic._internal._serializers"}
_FORMS = ("/oauth/token", "/oauth/introspect", "/oauth/authorize_device", "/oauth/revoke")


@pytest.mark.long
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_web_processes_import_nothing_after_the_fork(
    database: str, new_service: NewService
) -> None:
    """Check this because imports after the fork are not shared between processes."""
    live = new_service(database, only="web", WEB_CONCURRENCY="1", PYTHONPROFILEIMPORTTIME="1")
    with running(live):
        # Imports of gunicorn and of the first health check are complete when the service answers.
        loaded = _imported(live.log_text())
        for path in _USUAL:
            requests.get(live.url + path, timeout=60)
        for path in _FORMS:
            requests.post(live.url + path, data={"client_id": "x"}, timeout=60)
        _sign_in(live.url)
        later = _imported(live.log_text())[len(loaded) :]
    assert set(later) <= _OF_LIBRARIES


def _imported(log: str) -> list[str]:
    """Return the modules of all processes in the order of their imports."""
    lines = (line for line in log.splitlines() if line.startswith("import time:"))
    return [line.rpartition("|")[2].strip() for line in lines]


def _sign_in(url: str) -> None:
    browser = requests.Session()
    page = browser.get(f"{url}/users/sign_in", timeout=60).text
    token = page.partition('name="csrf_token"')[2].partition('value="')[2].partition('"')[0]
    form = {"csrf_token": token, "login": "nobody", "password": "wrong"}
    browser.post(f"{url}/users/sign_in", data=form, timeout=60)
