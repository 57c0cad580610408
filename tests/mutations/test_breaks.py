"""Each deliberate break fits the current code: `python -m tests.mutations.try_breaks` tries it."""

import ast
from collections import Counter

import pytest

from tests.mutations.try_breaks import ROOT, Break, read_breaks

BREAKS = read_breaks()
#: Folders and modules that have at least one break.
ROOMS = (
    *("blueprints", "forms", "models", "static", "templates"),
    *("domain/access", "domain/accounts", "domain/releases/usage", "domain/audit"),
    *(
        "domain/delivery/audit_streams",
        "domain/ci_cd",
        "domain/paging/contacts",
        "domain/core/tls.py",
    ),
    *(
        "domain/paging/escalations",
        "domain/heartbeats",
        "domain/accounts/identity_providers",
        "domain/paging/importing",
        "domain/incidents",
    ),
    *(
        "domain/delivery/mail",
        "domain/paging/maintenance_windows",
        "domain/paging/notifications",
        "domain/paging/on_call",
    ),
    *(
        "domain/delivery/outgoing",
        "domain/delivery/queue.py",
        "domain/accounts/personal_data",
        "domain/projects",
        "domain/registry",
    ),
    *("domain/releases", "domain/releases/checker", "domain/git", "domain/paging/silences"),
    *("domain/housekeeping", "domain/accounts/lifecycle", "domain/delivery/webhooks"),
    *("domain/alerts/deliveries.py", "domain/alerts/formats", "domain/alerts/handling"),
    *("domain/alerts/integrations", "domain/alerts/listing", "domain/alerts/matching"),
    *("domain/alerts/parsing", "domain/alerts/receiving", "domain/alerts/storing"),
    *("domain/oauth/clients", "domain/oauth/consent", "domain/oauth/device_authorizations.py"),
    *("domain/oauth/grants", "domain/oauth/openid", "domain/oauth/personal_tokens"),
    *(
        "domain/oauth/token_authentication",
        "domain/oauth/registration.py",
        "domain/oauth/tokens.py",
    ),
    *(
        "web/access",
        "blueprints/alerts/receivers.py",
        "web/api",
        "web/commands",
        "web/database",
        "web/http",
        "web/jobs",
    ),
    *("web/outgoing", "web/releases", "web/sealing", "web/server", "web/settings"),
    *("web/nonblocking_output.py", "blueprints/accounts/sign_in/attempts.py"),
)
LEAST_BREAKS = 60


def test_every_folder_has_a_break() -> None:
    found = Counter(each.room for each in BREAKS)
    assert set(found) == set(ROOMS)
    assert found.total() >= LEAST_BREAKS


@pytest.mark.parametrize("each", BREAKS, ids=lambda each: f"{each.room}: {each.says}")
def test_a_break_fits(each: Break) -> None:
    assert each.file == each.room or each.file.startswith(f"{each.room}/")
    text = (ROOT / each.file).read_text(encoding="utf-8")
    assert each.apply(text) != text
    if each.file.endswith(".py"):
        ast.parse(each.apply(text))
    assert each.says.endswith(".")
    assert each.tests
    for test in each.tests:
        file, _, name = test.partition("::")
        words = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {name.partition('[')[0]}(" in words or not name


def test_make_test_detects_every_break() -> None:
    """Tests that are marked long are not in `make test`."""
    named = {test.partition("[")[0] for each in BREAKS for test in each.tests if "::" in test}
    assert named
    assert not named & _long_tests({test.partition("::")[0] for test in named})


def _long_tests(files: set[str]) -> set[str]:
    """Return the ids of the tests of these files that are marked long."""
    return {
        f"{file}::{function.name}"
        for file in files
        for function in ast.parse((ROOT / file).read_text(encoding="utf-8")).body
        if isinstance(function, ast.FunctionDef)
        and "pytest.mark.long" in map(ast.unparse, function.decorator_list)
    }
