"""Real processes of Docker's registry and skopeo from Debian, on loopback."""

import os
import subprocess
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import requests
import yaml

from tests.support.oauth.oauth_wire import machine
from tests.support.registry.images import Image
from tests.support.service.live import ROOT, LiveGatebell
from tests.support.service.ports import free_port

_UNPACKED = ROOT / ".registry"
PROGRAMS = _UNPACKED / "usr" / "bin"
_START_SECONDS = 30


def is_installed() -> bool:
    """Return whether scripts/ensure-registry has installed them."""
    return (PROGRAMS / "docker-registry").exists() and _skopeo("--version").is_done


class Done(NamedTuple):
    """Result of a skopeo command."""

    is_done: bool
    said: str


def _skopeo(*arguments: str) -> Done:
    libraries = ":".join(str(each) for each in (_UNPACKED / "usr" / "lib").glob("*-linux-gnu"))
    try:
        done = subprocess.run(
            [str(PROGRAMS / "skopeo"), "--insecure-policy", *arguments],
            # No proxy is used, and no credentials of the user who runs the tests.
            env={"LD_LIBRARY_PATH": libraries, "HOME": "/nonexistent", "PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except OSError as error:
        return Done(is_done=False, said=str(error))
    return Done(is_done=done.returncode == 0, said=done.stdout + done.stderr)


def skopeo(*arguments: str, token: str | None = None, side: str = "") -> Done:
    """Run skopeo; `side` is `src-` or `dest-` for commands with two sides."""
    credentials = ["--no-creds"] if token is None else ["--creds", f"anybody:{token}"]
    flags = [each.replace("--", f"--{side}", 1) for each in ("--tls-verify=false", *credentials)]
    return _skopeo(arguments[0], *flags, *arguments[1:])


class Registry:
    """A registry with the configuration that the service generates, on its own port."""

    def __init__(self, directory: Path) -> None:
        """Choose a port, since the service may need it before the registry starts."""
        self._directory = directory
        directory.mkdir(parents=True)
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.host}"
        self._process: subprocess.Popen[bytes] | None = None

    def connect(self, gatebell: LiveGatebell, configuration: str, *, deletes: bool = True) -> None:
        """Store a configuration of the service and the certificates that it names."""
        made: dict[str, Any] = yaml.safe_load(configuration)
        bundle = self._directory / "bundle.pem"
        fetched = machine(gatebell).get(f"{gatebell.url}/jwt/certificates")
        assert fetched.status_code == 200, fetched.text
        bundle.write_text(fetched.text)
        made["storage"]["filesystem"]["rootdirectory"] = str(self._directory / "images")
        made["storage"]["delete"]["enabled"] = deletes
        made["http"]["addr"] = self.host
        made["auth"]["token"]["rootcertbundle"] = str(bundle)
        # The configuration for operators waits ten seconds.
        made["notifications"]["endpoints"][0]["backoff"] = "300ms"
        (self._directory / "config.yml").write_text(yaml.safe_dump(made))

    def start(self) -> None:
        """Start the registry, and wait until it requests a token."""
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(PROGRAMS / "docker-registry"), "serve", str(self._directory / "config.yml")],
                env={"PATH": os.environ["PATH"]},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = monotonic() + _START_SECONDS
        while not self._is_ready():
            assert monotonic() < deadline, self.log_text()
            assert self._process.poll() is None, self.log_text()
            sleep(0.05)

    def stop(self) -> None:
        """Stop the registry."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_START_SECONDS)
            self._process = None

    def log_text(self) -> str:
        """Return the registry's log."""
        return (self._directory / "log").read_text(encoding="utf-8", errors="replace")

    def push(self, image: Image, name: str, token: str | None) -> Done:
        """Push an image to a repository with its tag."""
        target = f"docker://{self.host}/{name}"
        return skopeo("copy", f"oci:{image.directory}", target, token=token, side="dest-")

    def inspect(self, name: str, token: str | None) -> Done:
        """Pull the description of an image."""
        return skopeo("inspect", f"docker://{self.host}/{name}", token=token)

    def tags(self, name: str, token: str | None) -> Done:
        """List the tags that the registry itself stores."""
        return skopeo("list-tags", f"docker://{self.host}/{name}", token=token)

    def _is_ready(self) -> bool:
        try:
            return requests.get(f"{self.url}/v2/", timeout=5).status_code == 401
        except (requests.ConnectionError, requests.Timeout):
            return False
