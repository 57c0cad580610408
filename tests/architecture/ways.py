"""Counts the project's functions that run for four requests: `python -m tests.architecture.ways`.

A checkout may be given; its application runs in this process.
"""

import base64
import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.wire.html_forms import HtmlForm, forms_in

ROOT = Path(__file__).parents[2]
PASSWORD = "a long passphrase of the tests 77"
CALLBACK = "https://a.example/callback"
_VERIFIER = "v" * 64
_PAGE_STATUS = 200


class Trace:
    """Functions of a folder that run while `is_on`, in all threads."""

    def __init__(self, root: Path) -> None:
        self._root = f"{root}{os.sep}"
        self._inside = (f"{root}{os.sep}.venv", f"{root}{os.sep}tests")
        self.is_on = False
        self.seen: set[tuple[str, str]] = set()
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        if not self.is_on or event != "call":
            return
        code = frame.f_code
        # Only Python itself regards comprehensions as functions.
        if code.co_name.startswith("<") and code.co_name != "<lambda>":
            return
        name = code.co_filename
        if name.startswith(self._root) and not name.startswith(self._inside):
            self.seen.add((name, code.co_qualname))

    def functions(self, request: Callable[[], Any], status: int) -> int:
        """Count the functions that run for a request that returns this status."""
        self.seen, self.is_on = set(), True
        answer = request()
        self.is_on = False
        if answer.status_code != status:
            raise RuntimeError(answer.text)
        return len(self.seen)


class Caller:
    """Requests of one user, one application and one sender."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.browser = app.test_client()
        account = ("users", "create", "alice", "--email", "alice@a.example", "--password-stdin")
        self._run(*account, stdin=f"{PASSWORD}\n")
        self._run("groups", "create", "acme", "--owner", "alice")
        self._run("projects", "create", "acme/shop")
        self._client = self._run(
            *("applications", "create", "App", "--owner", "alice", "--redirect-uri", CALLBACK),
            *("--scopes", "read_user"),
        )
        integration = ("integrations", "create", "acme/shop", "--type", "http", "--name", "Hook")
        self._sender = self._run(*integration)
        self._code = self._token = ""
        page = self.browser.get("/users/sign_in")
        form = next(form for form in forms_in(page.text) if form.has("password"))
        self._submit(form, login="alice", password=PASSWORD)

    def _run(self, *words: str, stdin: str = "") -> dict[str, Any]:
        done = self._app.test_cli_runner().invoke(args=words, input=stdin)
        if done.exit_code:
            message = f"gatebell {' '.join(words)}: {done.output}"
            raise RuntimeError(message)
        made: dict[str, Any] = json.loads(done.stdout)
        return made

    def _submit(self, form: HtmlForm, **values: str) -> Any:
        return self.browser.post(form.action, data=dict(form.filled(**values)))

    def approve(self) -> None:
        """Approve the application, which gets a code."""
        digest = hashlib.sha256(_VERIFIER.encode()).digest()
        asked = {
            "client_id": self._client["application_id"],
            "redirect_uri": CALLBACK,
            "response_type": "code",
            "scope": "read_user",
            "code_challenge_method": "S256",
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        }
        answer = self.browser.get("/oauth/authorize", query_string=asked)
        if answer.status_code == _PAGE_STATUS:
            form = next(form for form in forms_in(answer.text) if form.has("decision"))
            answer = self._submit(form, decision=form.buttons[0][1])
        location = str(answer.headers["Location"])
        self._code = parse_qs(urlsplit(location).query)["code"][0]

    def exchange(self) -> Any:
        """Exchange the code for tokens."""
        form = {
            "grant_type": "authorization_code",
            "code": self._code,
            "redirect_uri": CALLBACK,
            "client_id": self._client["application_id"],
            "client_secret": self._client["secret"],
            "code_verifier": _VERIFIER,
        }
        answer = self._app.test_client(use_cookies=False).post("/oauth/token", data=form)
        self._token = answer.get_json()["access_token"]
        return answer

    def request_token_info(self) -> Any:
        """Request information about the token."""
        headers = {"Authorization": f"Bearer {self._token}"}
        return self._app.test_client(use_cookies=False).get("/oauth/token/info", headers=headers)

    def send_alert(self) -> Any:
        """Send one alert."""
        url = urlsplit(self._sender["url"]).path
        headers = {"Authorization": f"Bearer {self._sender['key']}"}
        client = self._app.test_client(use_cookies=False)
        return client.post(url, json={"title": "Disk full"}, headers=headers)

    def open_alerts(self) -> Any:
        """Request the alerts of a project."""
        return self.browser.get("/acme/shop/-/alerts")


def ways(root: Path) -> dict[str, int]:
    """Count the functions for each request; the second of two requests counts, with warm caches."""
    sys.path.insert(0, str(root))
    os.chdir(root)
    trace = Trace(root)
    from app import create_app  # noqa: PLC0415 - of the checkout that was given
    from web.database.schema import migrate_to_newest  # noqa: PLC0415
    from web.settings.environment import parse_settings  # noqa: PLC0415

    with TemporaryDirectory() as folder:
        settings = parse_settings({"INSTANCE_PATH": folder, "BASE_URL": "http://localhost"})
        migrate_to_newest(settings)
        caller = Caller(create_app(settings))
        found = {}
        for _ in range(2):
            caller.approve()
            found = {
                "a code exchange": trace.functions(caller.exchange, 200),
                "a bearer check": trace.functions(caller.request_token_info, 200),
                "an alert": trace.functions(caller.send_alert, 200),
                "a page": trace.functions(caller.open_alerts, 200),
            }
    return found


if __name__ == "__main__":
    checkout = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    sys.stdout.write(json.dumps(ways(checkout)) + "\n")
