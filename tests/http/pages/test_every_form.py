"""Hostile values in every field of every form of an administrator: no request causes a 5xx."""

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
import requests

from tests.conftest import KINDS
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import open_browser
from tests.support.described.instance import SETTINGS, furnish
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import HtmlForm, forms_in

pytestmark = pytest.mark.long

VALUES = ("", "a\x00b", "é" * 3_000, "9" * 40, "-1", "2026-02-30T25:61", '{"a":', "NaN")
#: Forms that end the session, or that delete the objects of other forms.
ENDS = re.compile(r"sign_out|/delete|/lock|/deactivate|/(?:help/docs|help/guides)/")
#: Forms that affect every later page; they are tested last, in this order. The settings of a
#: project and of a group change its path, and later requests would only be redirected.
LAST = (
    re.compile(r"/-/settings/general$"),
    re.compile(r"^/groups/.+/-/settings$"),
    re.compile(r"^/(?:admin|-/user_settings)\b"),
)
#: Names of fields whose values may be in no log.
SECRETS = {"password", "new_password", "current_password", "client_secret"}
LEAST_FORMS = 100
#: Number of parts of the forms, which are tested at the same time.
PARTS = 3


def shape_of(url: str) -> str:
    """Return the path and parameter names of a URL with its numbers replaced."""
    parts = urlsplit(url)
    names = sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True)})
    return f"{re.sub(r'[0-9a-f]{16,}|[0-9]+', '1', parts.path)}?{','.join(names)}"


def pages_of(live: LiveGatebell, browser: requests.Session) -> Iterator[requests.Response]:
    """Visit one linked page of each kind."""
    waiting, seen = [f"{live.url}/"], set[str]()
    while waiting:
        url = waiting.pop()
        if shape_of(url) in seen or ENDS.search(url):
            continue
        seen.add(shape_of(url))
        page = browser.get(url, timeout=60)
        assert page.status_code < 500, url
        if page.headers["Content-Type"].startswith("text/html"):
            yield page
            links = re.findall(r'href="([^"#]+)', page.text)
            found = [urljoin(page.url, each.replace("&amp;", "&")) for each in links]
            waiting += [each for each in found if each.startswith(f"{live.url}/")]


def forms_of(live: LiveGatebell, browser: requests.Session) -> list[tuple[str, HtmlForm]]:
    """Return the target and form of each kind of form that changes something."""
    found: dict[tuple[str, ...], tuple[str, HtmlForm]] = {}
    for page in pages_of(live, browser):
        for form in forms_in(page.text):
            url = urljoin(page.url, form.action)
            if form.method == "post" and not ENDS.search(url):
                kind = (shape_of(url), *sorted({name for name, _ in form.fields}))
                found.setdefault(kind, (url, form))
    return sorted(found.values(), key=lambda each: order_of(urlsplit(each[0]).path))


def order_of(path: str) -> int:
    """Return the place of a form: first of all, or among the forms that affect later pages."""
    return next((n for n, each in enumerate(LAST, start=1) if each.search(path)), 0)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_hostile_values_in_forms_cause_no_server_error(
    new_service: NewService, kind: str, part: int
) -> None:
    faults: list[tuple[str, str, str, int]] = []
    with running(new_service(kind, only="web", **SETTINGS)) as live:
        furnish(live)
        browser = open_browser(live, get_shared_administrator(live))
        forms = forms_of(live, browser)
        for url, form in forms[part::PARTS]:
            for name in dict.fromkeys(name for name, _ in form.fields if name != "csrf_token"):
                for value in (*values_of(name), None):
                    sent = form.filled(**{name: value})
                    answer = browser.post(url, data=sent, allow_redirects=False, timeout=60)
                    if answer.status_code >= 500:
                        faults.append((url, name, str(value)[:20], answer.status_code))
                    assert "/users/sign_in" not in answer.headers.get("Location", ""), url
    assert faults == []
    assert len(forms) >= LEAST_FORMS


def values_of(name: str) -> list[str]:
    """Return the values for a field; values of secrets are unique."""
    return [f"{name} {each}" if name in SECRETS else each for each in VALUES]
