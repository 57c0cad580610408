"""What Git is told while there are no repositories."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.accounts.people import alice, bob, open_browser
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

PATHS = (
    "acme/shop.git/info/refs?service=git-upload-pack",
    "acme/deep/er/shop.git/info/refs?service=git-receive-pack",
    "shop.git/info/refs",
)


def test_git_is_asked_for_credentials_and_told_that_there_is_nothing(
    gatebell: LiveGatebell,
) -> None:
    for path in PATHS:
        for auth in (None, ("alice", "wrong")):
            answer = machine(gatebell).get(f"{gatebell.url}/{path}", auth=auth)
            assert answer.status_code == 401, path
            assert answer.headers["WWW-Authenticate"].startswith('Basic realm="Gatebell"'), path
            assert answer.headers["Content-Type"].startswith("text/plain"), path
            assert "no Git repositories yet" in answer.text, path
            assert "Set-Cookie" not in answer.headers, path
    pack = machine(gatebell).post(f"{gatebell.url}/acme/shop.git/git-upload-pack", data=b"0000")
    assert pack.status_code == 401


def test_git_itself_shows_the_sentence(live_sqlite: LiveGatebell, tmp_path: Path) -> None:
    address = live_sqlite.url.replace("://", "://alice:secret@")
    done = subprocess.run(
        ["git", "clone", f"{address}/acme/shop.git", str(tmp_path / "shop")],  # noqa: S607 - any Git
        env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "Gatebell has no Git repositories yet" in done.stderr


def test_scopes_that_open_nothing_are_known_but_not_named(gatebell: LiveGatebell) -> None:
    names = {"read_repository", "write_repository", "read_registry", "write_registry"}
    for document in ("openid-configuration", "oauth-authorization-server"):
        told = machine(gatebell).get(f"{gatebell.url}/.well-known/{document}").json()
        assert not names & set(told["scopes_supported"])
    resource = f"{gatebell.url}/.well-known/oauth-protected-resource/api/v4"
    assert not names & set(machine(gatebell).get(resource).json()["scopes_supported"])
    # A client library that sends them gets its token, which opens nothing that needs another.
    script = Api(gatebell, make_token(gatebell, bob(gatebell), scopes=" ".join(names)).clear)
    assert script.send("GET", "/user").status_code == 403
    page = open_browser(gatebell, bob(gatebell)).get(
        f"{gatebell.url}/-/user_settings/access_tokens"
    )
    assert "container images" in page.text
    new = open_browser(gatebell, alice(gatebell)).get(
        f"{gatebell.url}/-/user_settings/access_tokens/new"
    )
    assert not any(f'value="{name}"' in new.text for name in names)
