"""Bodies of Git's requests as clients send them, and as they should not, and too many requests."""

import gzip
from collections.abc import Iterator

import pytest
import requests

from tests.support.accounts.people import alice, make_project, make_user
from tests.support.accounts.personal_tokens import make_token
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

pytestmark = pytest.mark.one_database("sqlite")

TYPE = "application/x-git-upload-pack-request"
#: A request of version 2 for the names of branches.
LS_REFS = b"0014command=ls-refs\n0001" + b"0009peel\n" + b"0000"


def ask(gatebell: LiveGatebell, body: object, **headers: str) -> requests.Response:
    person = alice(gatebell)
    project = make_project(gatebell, person, visibility="public")
    url = f"{gatebell.url}/{project}.git/git-upload-pack"
    given = {"Content-Type": TYPE, "Git-Protocol": "version=2"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    return machine(gatebell).post(url, data=body, headers=given)  # type: ignore[arg-type]


def in_pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 5):
        yield body[start : start + 5]


def test_a_body_may_come_plain_chunked_and_compressed(gatebell: LiveGatebell) -> None:
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


def test_a_body_that_breaks_its_promises_is_never_an_error_of_ours(gatebell: LiveGatebell) -> None:
    assert ask(gatebell, LS_REFS, Content_Type="text/plain").status_code == 415
    bomb = gzip.compress(b"0014command=ls-refs\n0001" + b"0009peel\n" * 9_000_000)
    for body in (b"no gzip", gzip.compress(LS_REFS)[:-9], bomb):
        with pytest.raises(requests.ConnectionError):
            ask(gatebell, body, Content_Encoding="gzip")
    for protocol in ("version=9", "x" * 1000, "$(touch x)"):
        assert ask(gatebell, LS_REFS, Git_Protocol=protocol).status_code == 200
    for nonsense in (b"", b"0000", b"zzzz", b"ffff", b"\x00" * 100):
        assert ask(gatebell, nonsense).status_code == 200


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
