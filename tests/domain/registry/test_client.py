"""The client of the registry, with registries that fail and send wrong or very large responses."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from domain.registry.client import (
    RegistryClient,
    RegistryConnection,
    RegistryRequestError,
    RegistryUnavailableError,
)

#: Status, headers and body of a response.
Reply = tuple[int, dict[str, str], bytes]
DIGEST = "sha256:" + "0" * 64


class Fake:
    """A registry that returns configured responses and records requests."""

    def __init__(self) -> None:
        self.replies: dict[tuple[str, str], Reply] = {}
        self.asked: list[tuple[str, str, str]] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                token = self.headers.get("Authorization", "")
                fake.asked.append((self.command, self.path, token))
                status, headers, body = fake.replies.get((self.command, self.path), (404, {}, b""))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_HEAD = do_DELETE = do_PUT = do_POST = _answer  # noqa: N815 - the library's names

            def log_message(self, *_: Any) -> None:
                """Do not log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def fake() -> Iterator[Fake]:
    made = Fake()
    yield made
    made.close()


@pytest.fixture
def client(fake: Fake) -> Iterator[RegistryClient]:
    address = RegistryConnection(url=fake.url, token_for=lambda name: f"token of {name}")
    with RegistryClient(address) as opened:
        yield opened


def test_a_digest_is_requested_with_a_token_for_the_repository(
    fake: Fake, client: RegistryClient
) -> None:
    path = "/v2/a/b/manifests/v1"
    fake.replies["HEAD", path] = (200, {"Docker-Content-Digest": DIGEST}, b"")
    assert client.find_digest("a/b", "v1") == DIGEST
    assert client.find_digest("a/b", "v2") is None
    assert fake.asked[0] == ("HEAD", path, "Bearer token of a/b")


@pytest.mark.parametrize("header", [{}, {"Docker-Content-Digest": "../../../etc"}])
def test_an_invalid_digest_is_rejected(
    fake: Fake, client: RegistryClient, header: dict[str, str]
) -> None:
    fake.replies["HEAD", "/v2/a/b/manifests/v1"] = (200, header, b"")
    with pytest.raises(RegistryRequestError):
        client.find_digest("a/b", "v1")


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (500, RegistryUnavailableError, "500"),
        (503, RegistryUnavailableError, "503"),
        (429, RegistryUnavailableError, "429"),
        (401, RegistryRequestError, "current certificates"),
        (405, RegistryRequestError, "storage.delete.enabled"),
        (400, RegistryRequestError, "400"),
        # The token is not sent to the target of a redirect.
        (307, RegistryRequestError, "307"),
        (200, RegistryRequestError, "200"),
    ],
)
def test_failures_and_rejections_are_different_errors(
    fake: Fake, client: RegistryClient, status: int, error: type[Exception], words: str
) -> None:
    location = {"Location": "http://127.0.0.1:1/"}
    fake.replies["DELETE", f"/v2/a/b/manifests/{DIGEST}"] = (status, location, b"")
    with pytest.raises(error, match=words):
        client.delete_manifest("a/b", DIGEST)


def test_deleting_a_missing_manifest_succeeds(client: RegistryClient) -> None:
    client.delete_manifest("a/b", DIGEST)


def test_an_unreachable_registry_is_a_failure() -> None:
    # No server listens on this port.
    address = RegistryConnection(url="http://127.0.0.1:1", token_for=str)
    with (
        RegistryClient(address) as client,
        pytest.raises(RegistryUnavailableError, match="cannot be reached"),
    ):
        client.find_digest("a/b", "v1")


def tags(client: RegistryClient) -> list[str]:
    return list(client.iterate_tags("a/b"))


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ('</v2/a/b/tags/list?n=500&last=v1>; rel="next"', ["v1", "v2"]),
        ('<{url}/v2/a/b/tags/list?n=500&last=v1>; rel="next"', ["v1", "v2"]),
        # Another host, and a port with the same first digits: the token is not sent to them.
        ('<http://127.0.0.1:1/v2/a/b/tags/list>; rel="next"', ["v1"]),
        ('<{url}1/v2/a/b/tags/list>; rel="next"', ["v1"]),
        ("nonsense; next", ["v1"]),
    ],
)
def test_links_to_pages_of_tags_are_only_followed_within_the_registry(
    fake: Fake, client: RegistryClient, link: str, expected: list[str]
) -> None:
    first, second = "/v2/a/b/tags/list?n=500", "/v2/a/b/tags/list?n=500&last=v1"
    fake.replies["GET", first] = (
        200,
        {"Link": link.format(url=fake.url)},
        b'{"tags": ["v1", 7, "../x"]}',
    )
    fake.replies["GET", second] = (200, {}, b'{"tags": ["v2"]}')
    assert tags(client) == expected


def test_an_endless_list_is_cut(
    fake: Fake, client: RegistryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.registry.client._MAX_TAG_PAGES", 9)
    path = "/v2/a/b/tags/list?n=500"
    fake.replies["GET", path] = (200, {"Link": f'<{path}>; rel="next"'}, b'{"tags": null}')
    assert tags(client) == []
    assert len(fake.asked) == 9


@pytest.mark.parametrize("body", [b"x", b"\xff", b"[" * 100_000, b" " * (1024 * 1024 + 1)], ids=len)
def test_an_invalid_list_is_rejected(fake: Fake, client: RegistryClient, body: bytes) -> None:
    fake.replies["GET", "/v2/a/b/tags/list?n=500"] = (200, {}, body)
    with pytest.raises(RegistryRequestError):
        tags(client)
