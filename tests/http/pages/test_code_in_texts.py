"""Pages show parameters and commands in errors and descriptions as code."""

import pytest

from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import signed_in
from tests.support.service.live import LiveGatebell
from web.pages.templating import format_code_spans


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("`until` is missing.", "<code>until</code> is missing."),
        ("`a<b` & `c`", "<code>a&lt;b</code> &amp; <code>c</code>"),
        ("One ` only", "One ` only"),
        ("", ""),
    ],
)
def test_the_parts_between_backticks_are_code(text: str, shown: str) -> None:
    assert str(format_code_spans(text)) == shown


@pytest.mark.one_database("sqlite")
def test_descriptions_of_settings_and_errors_of_lists_have_no_backticks(
    gatebell: LiveGatebell,
) -> None:
    browser = signed_in(gatebell, get_shared_administrator(gatebell))
    settings = browser.get(f"{gatebell.url}/admin/settings").text
    assert "<code>make migrate</code>" in settings
    assert "`" not in settings
    refused = browser.get(f"{gatebell.url}/admin/users", params={"wrong": "1"})
    assert refused.status_code == 400
    assert "<code>wrong</code>" in refused.text
    assert "`" not in refused.text
