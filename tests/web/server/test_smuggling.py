"""Tests that ambiguous requests are split as recorded in smuggling.toml."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.service.plain_server import PlainServer, running_plain_server
from tests.support.service.ports import free_port
from tests.support.service.proxies import find, running_proxy
from tests.support.wire.http_verdicts import (
    Verdict,
    requests_since_the_last_time,
    verdict_of_gunicorn,
    verdict_of_proxy,
    verdict_of_server,
)


class Case(NamedTuple):
    """Describes the bytes that a connection sends, and how a server splits them."""

    name: str
    sent: bytes
    verdict: Verdict


def _read() -> Iterator[Case]:
    table = tomllib.loads(Path(__file__).with_name("smuggling.toml").read_text(encoding="utf-8"))
    for given in table["case"]:
        text, times = given.get("fill", ("", 0))

        def filled(short: str, filling: str = text * times) -> str:
            return short.replace("FILL", filling)

        def verdict(recorded: list[Any]) -> Verdict:
            requests = tuple(filled(each) for each in recorded if isinstance(each, str))
            statuses = [each for each in recorded if isinstance(each, int)]
            return Verdict(requests, statuses[0] if statuses else None)

        yield Case(
            name=given["name"],
            sent=filled(given["bytes"]).encode("latin-1"),
            verdict=verdict(given["verdict"]),
        )


CASES = tuple(_read())
_each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainServer]:
    with running_plain_server(tmp_path_factory.mktemp("plain")) as running:
        yield running
    assert "Traceback" not in running.log.read_text(encoding="utf-8")


@_each_case
def test_ambiguous_requests_get_the_recorded_verdict(plain: PlainServer, case: Case) -> None:
    assert verdict_of_gunicorn(case.sent) == case.verdict
    assert verdict_of_server(plain.port, case.sent) == case.verdict


def test_the_server_gives_the_same_verdict_when_the_bytes_arrive_one_by_one(
    plain: PlainServer,
) -> None:
    for case in CASES:
        if len(case.sent) < 500:
            assert verdict_of_server(plain.port, case.sent, piece=1) == case.verdict, case.name


@pytest.mark.long
@pytest.mark.parametrize("path", ["/echo", "/a.git/echo"], ids=["buffered", "not buffered"])
def test_a_request_through_a_proxy_does_not_become_two(tmp_path: Path, path: str) -> None:
    if find("nginx") is None:
        pytest.skip("scripts/ensure-proxies brings it")
    port = free_port()
    with (
        running_plain_server(tmp_path) as server,
        running_proxy(
            "nginx", folder=tmp_path, certificate=None, port=port, service_ports=[server.port]
        ),
    ):
        for case in CASES:
            sent = case.sent.replace(b"/echo", path.encode())
            answered = verdict_of_proxy(port, sent).requests
            assert requests_since_the_last_time(server.port) == answered, case.name
