"""Bodies of Git's requests: valid and malformed ones, and the rate limit."""

import gzip
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import requests

from tests.support.accounts.people import alice, make_project, make_user
from tests.support.accounts.personal_tokens import make_token
from tests.support.git.raw import build_request_headers, send_without_reading
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

pytestmark = pytest.mark.one_database("sqlite")

TYPE = "application/x-git-upload-pack-request"
#: A request for the branches in version 2 of the protocol.
LS_REFS = b"0014command=ls-refs\n0001" + b"0009peel\n" + b"0000"


@cache
def public_project(gatebell: LiveGatebell) -> str:
    """Return a project that all tests share."""
    return make_project(gatebell, alice(gatebell), visibility="public")


def ask(gatebell: LiveGatebell, body: object, **headers: str) -> requests.Response:
    url = f"{gatebell.url}/{public_project(gatebell)}.git/git-upload-pack"
    given = {"Content-Type": TYPE, "Git-Protocol": "version=2"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    return machine(gatebell).post(url, data=body, headers=given)  # type: ignore[arg-type]


def in_pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 5):
        yield body[start : start + 5]


def test_plain_chunked_and_compressed_bodies_are_accepted(gatebell: LiveGatebell) -> None:
    packed = gzip.compress(LS_REFS)
    for body, encoding in (
        (LS_REFS, {}),
        (in_pieces(LS_REFS), {}),
        (packed, {"Content_Encoding": "gzip"}),
        (in_pieces(packed), {"Content_Encoding": "x-gzip"}),
    ):
        answer = ask(gatebell, body, **encoding)
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "application/x-git-upload-pack-result"
        assert answer.content == b"0000"


def packed(body: bytes) -> dict[str, Any]:
    """Return a compressed body and its header."""
    return {"body": body, "Content_Encoding": "gzip"}


WORDS = {"Content-Type": "text/plain; charset=utf-8"}
BROKEN: dict[str, tuple[dict[str, Any], int, str]] = {
    "no gzip": (packed(LS_REFS), 400, "The body is not valid gzip, but Content-Encoding is gzip."),
    "a wrong checksum": (packed(gzip.compress(LS_REFS)[:-8] + b"x" * 8), 400, "is not valid gzip"),
    "cut short": (packed(gzip.compress(LS_REFS)[:-9]), 400, "The gzip body is incomplete."),
    "nothing": (packed(b""), 400, "The gzip body is incomplete."),
    "more behind the end": (packed(gzip.compress(LS_REFS) + b"x"), 400, "followed by other data"),
    **{
        coding: (
            {"body": LS_REFS, "Content_Encoding": coding},
            415,
            "supported content encoding is gzip.",
        )
        for coding in ("br", "deflate", "zstd", "gzip, gzip", "x" * 1000)
    },
}


@pytest.mark.long
def test_an_error_explains_a_body_that_contradicts_its_headers(
    gatebell: LiveGatebell,
) -> None:
    large = b"0014command=ls-refs\n0001" + b"0009peel\n" * 9_000_000
    bomb = (packed(gzip.compress(large, 1)), 413, "must be smaller than 67108864 bytes.")
    for given, status, why in (*BROKEN.values(), bomb):
        answer = ask(gatebell, **given)
        assert (answer.status_code, why in answer.text) == (status, True), answer.text
        assert answer.headers.items() >= WORDS.items()
        assert answer.headers.get("Accept-Encoding") == ("gzip" if status == 415 else None)
    assert ask(gatebell, LS_REFS).status_code == 200


@pytest.mark.long
def test_git_answers_malformed_bodies(gatebell: LiveGatebell) -> None:
    assert ask(gatebell, LS_REFS, Content_Type="text/plain").status_code == 415
    for protocol in ("version=9", "x" * 1000, "$(touch x)"):
        assert ask(gatebell, LS_REFS, Git_Protocol=protocol).status_code == 200
    for nonsense in (b"", b"0000", b"zzzz", b"ffff", b"\x00" * 100):
        assert ask(gatebell, nonsense).status_code == 200


@pytest.mark.parametrize(
    ("service", "lines", "body", "status"),
    [
        ("git-upload-pack", ["Transfer-Encoding: chunked"], b"zz\r\n0000\r\n", 400),
        ("git-upload-pack", ["Content-Length: 67108865"], b"", 413),
        ("git-receive-pack", ["Content-Length: 7", "Content-Encoding: gzip"], b"no gzip", 400),
        ("git-receive-pack", ["Content-Length: 4", "Content-Encoding: br"], b"0000", 415),
    ],
)
def test_an_unreadable_body_is_rejected_immediately(
    gatebell: LiveGatebell, service: str, lines: list[str], body: bytes, status: int
) -> None:
    person = alice(gatebell)
    project = make_project(gatebell, person)
    token = make_token(gatebell, person, scopes="write_repository").clear
    with send_without_reading(
        gatebell, build_request_headers(service, project, token, *lines) + body
    ) as client:
        assert client.recv(1000).startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.long
def test_too_many_requests_are_refused_with_the_headers_of_the_limit(
    gatebell: LiveGatebell,
) -> None:
    person = make_user(gatebell)
    project = make_project(gatebell, person)
    auth = ("x", make_token(gatebell, person, scopes="read_repository").clear)
    url = f"{gatebell.url}/{project}.git/info/refs?service=git-upload-pack"
    with changed_settings(gatebell, git_rate_limit="2/day"):
        statuses = [machine(gatebell).get(url, auth=auth) for _ in range(3)]
    assert [answer.status_code for answer in statuses] == [200, 200, 429]
    assert statuses[2].headers["RateLimit-Remaining"] == "0"
    assert int(statuses[2].headers["Retry-After"]) > 0
    assert statuses[2].headers["Content-Type"].startswith("text/plain")
