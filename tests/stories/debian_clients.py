"""Runs programs with the clients of GitLab's API in Ruby and Go from Debian.

`scripts/ensure-gitlab-clients` unpacks the clients; without them the tests are skipped.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

_CLIENTS = Path(__file__).parents[2] / ".gitlab-clients"
_SECONDS = 240


def run_ruby(script: Path, given: Mapping[str, str]) -> dict[str, Any]:
    """Run a Ruby script with its input, and return its output."""
    _check()
    usr = _CLIENTS / "usr"
    (libraries,) = (usr / "lib").glob("*-linux-gnu")
    (version,) = (each.name for each in (usr / "lib" / "ruby").glob("[0-9]*"))
    own = (
        *(usr / "lib/ruby/vendor_ruby", libraries / "ruby/vendor_ruby" / version),
        *(libraries / "ruby" / version, usr / "lib/ruby" / version),
    )
    variables = {
        "LD_LIBRARY_PATH": str(libraries),
        "RUBYLIB": os.pathsep.join(map(str, own)),
        "GEM_PATH": str(usr / "share/rubygems-integration/all"),
    }
    return _run([usr / "bin/ruby", script, json.dumps(dict(given))], variables)


def run_go(program: Path, given: Mapping[str, str]) -> dict[str, Any]:
    """Build a Go program, run it with its input, and return its output."""
    _check()
    (root,) = (_CLIENTS / "usr/lib").glob("go-*")
    variables = {
        "GOROOT": str(root),
        "GOPATH": str(_CLIENTS / "usr/share/gocode"),
        "GOCACHE": str(_CLIENTS / "go-cache"),
        "GO111MODULE": "off",
        "CGO_ENABLED": "0",
        "GOFLAGS": "-p=1",
    }
    return _run([root / "bin/go", "run", program, json.dumps(dict(given))], variables)


def _check() -> None:
    if not (_CLIENTS / ".complete").exists():
        pytest.skip("run scripts/ensure-gitlab-clients: Debian's clients are not here")


def _run(command: Sequence[Path | str], variables: Mapping[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], "HOME": str(_CLIENTS), "no_proxy": "*", **variables},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed
