"""Tests of `/api/v4/releases/check`, which finds breaking changes in uploads, and of its page."""

import gzip
import re
from typing import Any

import pytest
import requests

from domain.core.errors import TooManyAttemptsError
from tests.domain.releases.checker.examples import har, line_of
from tests.support.accounts.people import make_user
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings
from web.api.release_checks import _AnonymousCheckSlots

pytestmark = pytest.mark.one_database("sqlite")

PATH = "/api/v4/releases/check"
PAGE = "/help/releases/check"
_SECRET = "glpat-Zq8sVt3Xk1LmNp7RwYbC"
_LIST = f"GET /api/v4/users?page=2&private_token={_SECRET}\nGET /api/v4/users?page=1\n"


def _check(gatebell: LiveGatebell, **given: Any) -> requests.Response:
    return requests.post(gatebell.url + PATH, json=given, timeout=30)


def test_each_finding_has_its_change_line_release_and_replacement(gatebell: LiveGatebell) -> None:
    answer = _check(gatebell, name="requests.txt", content=_LIST)
    assert answer.status_code == 200
    [finding] = answer.json()["findings"]
    assert {name: finding[name] for name in ("change", "line", "release")} == {
        "change": "users-offset-pagination",
        "line": 1,
        "release": "17.0",
    }
    assert "keyset" in finding["replacement"]
    assert finding["certainty"] == "sure"
    assert requests.get(finding["url"], timeout=10).status_code == 200


def test_a_finding_in_a_har_file_has_the_line_of_its_url(gatebell: LiveGatebell) -> None:
    url = f"https://gatebell.example/api/v4/users?page=7&private_token={_SECRET}"
    content = har({"url": "https://gatebell.example/api/v4/version"}, {"url": url})
    answer = requests.post(
        gatebell.url + PATH, files={"file": ("session.har", content)}, timeout=30
    )
    assert [each["line"] for each in answer.json()["findings"]] == [line_of(content, "page=7")]
    assert answer.json()["kind"] == "HAR file"
    assert _SECRET not in answer.text


def test_findings_of_later_releases_are_omitted(gatebell: LiveGatebell) -> None:
    for release, count in (("16.11", 0), ("17.0", 1)):
        found = _check(gatebell, name="a.txt", content=_LIST, release=release).json()["findings"]
        assert len(found) == count
        sent = {"release": release}
        answer = requests.post(
            gatebell.url + PATH, data=sent, files={"file": ("a.txt", _LIST)}, timeout=30
        )
        assert len(answer.json()["findings"]) == count


UNREADABLE: tuple[tuple[dict[str, Any], str], ...] = (
    ({"name": "a.har", "content": "{"}, "not valid JSON (line 1)"),
    ({"name": "a.har", "content": "[]"}, "no log.entries"),
    ({"name": "a.json", "content": "{not json"}, "not valid JSON (line 1)"),
    ({"name": "a.py", "content": "def (:"}, "a bracket is not closed (line 1)"),
    ({"name": "a.yml", "content": "a: 1\nb: ["}, "not valid YAML (line"),
    ({"name": "a.graphql", "content": "{\n a(\n"}, "not a valid GraphQL document"),
    ({"content": ""}, "`content` is empty"),
    ({"content": "  \n"}, "`content` is empty"),
    ({"name": "a.py"}, "`content` is missing"),
    ({"name": "a.py", "content": "x", "release": "next"}, "must be a release such as 18.0"),
    ({"name": 7, "content": ["x"]}, "`content` must be a string"),
)


def test_unreadable_content_is_rejected_with_the_reason(gatebell: LiveGatebell) -> None:
    for given, said in UNREADABLE:
        answer = _check(gatebell, **given)
        assert (answer.status_code, said in answer.text) == (400, True), given
    file = ("logo.png", b"\x89PNG\r\n\x1a\n\x00\x00")
    binary = requests.post(gatebell.url + PATH, files={"file": file}, timeout=30)
    assert (binary.status_code, "binary" in binary.text) == (400, True)


BODIES = (
    (b"{", "application/json", 422),
    (b"[]", "application/json", 422),
    (b"\x00\x01", "multipart/form-data; boundary=x", 400),
    (b"--x\r\nnot a part", "multipart/form-data; boundary=x", 400),
    (b"", "multipart/form-data", 400),
    (b"content=GET /api/v4/users", "application/x-www-form-urlencoded", 200),
)


def test_invalid_bodies_cause_no_server_errors(gatebell: LiveGatebell) -> None:
    for body, content_type, status in BODIES:
        headers = {"Content-Type": content_type}
        answer = requests.post(gatebell.url + PATH, data=body, headers=headers, timeout=30)
        assert answer.status_code in {status, 400}, body


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "part", "said"),
    [
        ("a.json", "[", "nested too deeply (line 1)"),
        ("a.py", "[", "takes too long"),
        pytest.param(
            *(".gitlab-ci.yml", "---\na: &a x\nb: [*a]\n", "takes too long"),
            marks=pytest.mark.long,
        ),
    ],
)
def test_content_that_would_take_too_long_is_rejected(
    gatebell: LiveGatebell, name: str, part: str, said: str
) -> None:
    file = (name, part * (4_800_000 // len(part)))
    answer = requests.post(gatebell.url + PATH, files={"file": file}, timeout=60)
    assert (answer.status_code, said in answer.text) == (400, True), answer.text
    if name == "a.json":  # The page uses the same checker.
        page = requests.post(gatebell.url + PAGE, files={"file": file}, timeout=60)
        assert (page.status_code, said in page.text) == (400, True)


@pytest.mark.long
def test_parallel_checks_without_a_token_are_limited_in_total_and_per_address() -> None:
    places = _AnonymousCheckSlots()
    with places.hold_slot("192.0.2.1"):
        with pytest.raises(TooManyAttemptsError, match="checks without a token") as error:
            places.hold_slot("192.0.2.1").__enter__()
        assert error.value.retry_after == 5
        with places.hold_slot("192.0.2.2"), pytest.raises(TooManyAttemptsError):
            places.hold_slot("192.0.2.3").__enter__()
        with places.hold_slot("192.0.2.3"):
            pass
    with places.hold_slot("192.0.2.1"):
        pass


@pytest.mark.long
def test_parallel_checks_without_a_token_do_not_block_users(gatebell: LiveGatebell) -> None:
    token = make_token(gatebell, make_user(gatebell)).clear
    slow = {"name": "a.py", "content": "[" * 3_000_000}

    def check(**headers: str) -> requests.Response:
        return requests.post(gatebell.url + PATH, json=slow, headers=headers, timeout=60)

    answers = run_simultaneously([check] * 6 + [lambda: check(Authorization=f"Bearer {token}")])
    *anonymous, of_user = answers
    assert of_user.status_code in {200, 400}
    refused = [each for each in anonymous if each.status_code == 429]
    assert refused
    assert all("without a token" in each.text for each in refused)
    assert {each.headers["Retry-After"] for each in refused} == {"5"}


def test_content_above_the_limit_is_rejected_in_every_format(gatebell: LiveGatebell) -> None:
    text = "x" * 20_000
    with changed_settings(gatebell, release_check_limit_bytes="16384"):
        as_json = _check(gatebell, name="a", content=text)
        as_file = requests.post(gatebell.url + PATH, files={"file": ("a", text)}, timeout=30)
        packed = requests.post(
            gatebell.url + PATH,
            data=gzip.compress(b'{"content": "%s"}' % text.encode()),
            headers={"Content-Type": "application/json", "Content-Encoding": "gzip"},
            timeout=30,
        )
        page = requests.post(gatebell.url + PAGE, files={"file": ("a", text)}, timeout=30)
    assert [each.status_code for each in (as_json, as_file, packed, page)] == [413] * 4


@pytest.mark.long
def test_content_above_the_usual_form_limit_is_accepted(gatebell: LiveGatebell) -> None:
    content = "x\n" * 400_000 + "GET /api/v4/users?page=2\n"
    answer = requests.post(gatebell.url + PATH, files={"file": ("a.http", content)}, timeout=60)
    assert [each["line"] for each in answer.json()["findings"]] == [400_001]


@pytest.mark.long
def test_checks_are_rate_limited(gatebell: LiveGatebell) -> None:
    # Each process counts for itself, so one of them exceeds the limit soon.
    with changed_settings(gatebell, release_check_rate_limit="2/hour"):
        statuses = {_check(gatebell, content="x").status_code for _ in range(20)}
        pages = {
            requests.post(gatebell.url + PAGE, data={"content": "x"}, timeout=30).status_code
            for _ in range(20)
        }
    assert statuses == {200, 429}
    assert 429 in pages


def test_a_token_is_optional_but_must_be_valid(gatebell: LiveGatebell) -> None:
    token = make_token(gatebell, make_user(gatebell), scopes="read_user").clear
    for value, status in ((token, 200), ("glpat-nothing", 401)):
        headers = {"PRIVATE-TOKEN": value, "Idempotency-Key": "one"}
        sent = {"name": "a.txt", "content": _LIST}
        answer = requests.post(gatebell.url + PATH, json=sent, headers=headers, timeout=30)
        assert answer.status_code == status
    again = requests.post(
        gatebell.url + PATH,
        json={"content": "nothing"},
        headers={"PRIVATE-TOKEN": token, "Idempotency-Key": "one"},
        timeout=30,
    )
    assert again.json()["findings"] == []


def test_content_is_not_logged(gatebell: LiveGatebell) -> None:
    for name, content in (("a.txt", _LIST), ("a.har", f'{{"{_SECRET}": '), (_SECRET, "x")):
        _check(gatebell, name=name, content=content)
    assert _SECRET not in gatebell.log_text()


def _text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_the_page_shows_findings_but_no_secrets(gatebell: LiveGatebell) -> None:
    file = {"file": ("a.txt", _LIST)}
    page = requests.post(gatebell.url + PAGE, files=file, data={"release": "18.0"}, timeout=30)
    assert page.status_code == 200
    assert "1 finding up to release 18.0. Detected type: List of requests." in _text_of(page.text)
    assert f'href="{gatebell.url}' not in page.text
    assert 'href="/help/releases/users-offset-pagination"' in page.text
    assert _SECRET not in page.text
    assert "Set-Cookie" not in page.headers
    good = {"content": "GET /api/v4/users", "release": "17.0"}
    page = requests.post(gatebell.url + PAGE, data=good, timeout=30)
    assert "No breaking changes found up to release 17.0." in page.text


def test_the_page_explains_errors(gatebell: LiveGatebell) -> None:
    for sent, said in (
        ({"content": ""}, "Choose a file, or paste the content."),
        ({"content": "{", "name": "a.har"}, "not valid JSON"),
        ({"content": "def (:", "name": "deploy.py"}, "not a complete program"),
        ({"content": "x", "release": "1.0"}, "Not a valid choice"),
    ):
        page = requests.post(gatebell.url + PAGE, data=sent, timeout=30)
        assert (page.status_code, said in page.text) == (400, True), sent
