"""Tries deliberate breaks of the product: `python -m tests.mutations.try_breaks`.

Each break in `breaks.toml` is a careless change. It is made in a copy of the checkout, and the
tests that have to detect it run there. Before the first break, these tests have to pass. The exit
status is 1 if a break was not detected.
"""

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from shutil import copy2
from tempfile import TemporaryDirectory
from time import monotonic

ROOT = Path(__file__).parents[2]
_BREAKS = Path(__file__).with_name("breaks.toml")
_PYTEST = (".venv/bin/python", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")
#: Exit status of pytest if a test failed; other statuses mean that none ran.
_FAILED = 1
_FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)
_LAST_LINES = -40


@dataclass(frozen=True, kw_only=True)
class Break:
    """A harmful change."""

    #: Folder or module whose tests are checked.
    room: str
    file: str
    #: Text that occurs once in the file.
    find: str
    replace: str
    #: Files of tests, or ids of single tests, that have to detect the break.
    tests: Sequence[str]
    #: Description of the broken behavior.
    says: str

    def apply(self, text: str) -> str:
        """Return the text of the file with the break.

        Raise ValueError unless the file has the text exactly once.
        """
        if text.count(self.find) != 1:
            message = f"{self.file} has this text {text.count(self.find)} times: {self.find}"
            raise ValueError(message)
        return text.replace(self.find, self.replace)


def read_breaks(path: Path = _BREAKS) -> list[Break]:
    """Read a list of breaks."""
    listed = tomllib.loads(path.read_text(encoding="utf-8"))["break"]
    return [Break(**each) for each in listed]


def copy_files(checkout: Path, folder: Path) -> None:
    """Copy the files of a checkout that Git knows and their bytecode, and link its environment.

    The bytecode stays valid, because the copies keep the times of their files.
    """
    listing = ("git", "ls-files", "-z")
    listed = subprocess.check_output(listing, cwd=checkout, text=True)
    for name in filter(None, listed.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy2(checkout / name, folder / name, follow_symlinks=False)
        bytecode = Path(cache_from_source(name)) if name.endswith(".py") else None
        if bytecode and (checkout / bytecode).exists():
            (folder / bytecode).parent.mkdir(exist_ok=True)
            copy2(checkout / bytecode, folder / bytecode)
    (folder / ".venv").symlink_to((checkout / ".venv").resolve())


def run(tests: Iterable[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run tests in the copy until one fails."""
    # Bytecode is kept, because each service that a test starts would compile the code again.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    command = (*_PYTEST, *tests)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)  # noqa: PLW1510


def try_break(tried: Break, folder: Path) -> bool:
    """Make a break in the copy and return whether a test detects it."""
    begun, file = monotonic(), folder / tried.file
    unbroken = file.read_text(encoding="utf-8")
    file.write_text(tried.apply(unbroken), encoding="utf-8")
    done = run(tried.tests, folder)
    file.write_text(unbroken, encoding="utf-8")
    found = _FIRST_FAILURE.search(done.stdout)
    is_seen = found is not None and done.returncode == _FAILED
    by = f"seen by {found[1]}" if found and is_seen else f"NOT SEEN by {' '.join(tried.tests)}"
    _tell(f"{tried.room}: {tried.says} {by} in {monotonic() - begun:.0f} s")
    return is_seen


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Try the breaks that the arguments select."""
    parser = argparse.ArgumentParser(description="Try breaks of the product on its tests.")
    parser.add_argument("--room", action="append", help="only breaks of this room")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="of the code and tests")
    parser.add_argument("--breaks", type=Path, default=_BREAKS, help="another list of breaks")
    asked = parser.parse_args()
    breaks = [
        each for each in read_breaks(asked.breaks) if each.room in (asked.room or [each.room])
    ]
    with TemporaryDirectory() as name:
        folder = Path(name)
        copy_files(asked.checkout.resolve(), folder)
        unbroken = run(dict.fromkeys(test for each in breaks for test in each.tests), folder)
        if unbroken.returncode != 0:
            _tell("Without a break:\n" + "\n".join(unbroken.stdout.splitlines()[_LAST_LINES:]))
            return 1
        seen = [try_break(each, folder) for each in breaks]
    _tell(f"{sum(seen)} of {len(seen)} breaks were seen.")
    return 0 if seen and all(seen) else 1


if __name__ == "__main__":
    sys.exit(main())
