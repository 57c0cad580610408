"""Documents that a test follows: it runs their commands in order and compares what they print."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT, SIGKILL
from typing import Any, NamedTuple

from markdown_it import MarkdownIt

from blueprints.help.documents import load_documents
from tests.support.service.live import ROOT

_BASH = shutil.which("bash") or "bash"
_SECONDS = 120
#: Settings of curl: fail at a status of 400 or higher, print only the response, and use no proxy.
_CURL_SETTINGS = "fail-with-body\nsilent\nshow-error\nnoproxy = *\n"
#: Stands for omitted members of a JSON object, and in strings for omitted characters.
_OMITTED = "…"
#: Keys whose values differ each time, even if the document shows a whole value.
_VARYING = frozenset({"created_at", "password", "url", "user_code"})
_PART_OF_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|…')
#: The start of a random value that never varies: the prefix of a token, or the path of a URL.
_FIXED_START = re.compile(r"gb[a-z]-|.*/|")


class Shell:
    """A terminal in the folder of the project, which keeps its variables between commands.

    curl fails at each status of 400 or higher, as a reader would notice.
    """

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self._kept = home / "environment"
        #: The variables that the next command gets.
        self.environment = {**environment, "HOME": str(home)}
        (home / ".curlrc").write_text(_CURL_SETTINGS)

    def run(self, command: str) -> str:
        """Run a command that has to succeed, and return what it prints."""
        keep = f"\nenv -0 > {shlex.quote(str(self._kept))}"
        done = subprocess.run(
            [_BASH, "-aeuo", "pipefail", "-c", command + keep],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        kept = self._kept.read_text(encoding="utf-8").split("\0")
        self.environment = dict(each.split("=", 1) for each in kept if each)
        return done.stdout

    @contextmanager
    def running(self, command: str) -> Iterator[None]:
        """Run a command in the background, and interrupt it at the end, as Ctrl-C does."""
        with subprocess.Popen(
            [_BASH, "-euo", "pipefail", "-c", f"exec env {command}"],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        ) as process:
            try:
                yield
                assert process.poll() is None, f"{command} has ended"
            finally:
                os.killpg(process.pid, SIGINT)
                try:
                    process.wait(_SECONDS)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, SIGKILL)
                    raise


class _Block(NamedTuple):
    """A code block of a document."""

    heading: str
    language: str
    text: str

    def commands(self, response: str) -> Iterator[tuple[str, str]]:
        """Yield the commands, each with the output that the document shows for it."""
        if self.language == "sh":
            yield self.text, response
            return
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            found = re.match(r"(?:.*\\\n)*.*\n", part)
            assert found, part
            yield found[0], part[found.end() :]


class Walkthrough:
    """A document whose code blocks are used one after the other.

    A shown value with `…` in it stands for a random value. Later commands get the value that the
    latest response has at the same key.
    """

    def __init__(
        self,
        name: str,
        shell: Shell,
        replacements: Mapping[str, str],
        *,
        varying: Iterable[str] = (),
    ) -> None:
        self.text = load_documents()[name].text
        self.shell = shell
        #: Texts of the document, and their replacements in the test.
        self.replacements = dict(replacements)
        self._varying = _VARYING.union(varying)
        self._keys: dict[str, str] = {}
        self._blocks = list(_blocks(self.text))

    def run(self, heading: str) -> str:
        """Run the next block, which is below a heading; return what its last command prints."""
        block = self._next(heading)
        assert block.language in {"sh", "console"}, block
        is_answered = bool(self._blocks) and self._blocks[0].language == "json"
        output = ""
        for command, shown in block.commands(self._blocks.pop(0).text if is_answered else ""):
            output = self.shell.run(self.fill(command))
            if shown.strip():
                self._check(shown, output)
            elif output.startswith("{"):
                self._remember(json.loads(output))
        return output

    def take(self, heading: str) -> str:
        """Return the next block, which is below a heading, without running it."""
        return self._next(heading).text

    def is_finished(self) -> bool:
        """Return whether all blocks were used."""
        return not self._blocks

    def fill(self, text: str) -> str:
        """Replace the values of the document in a text by the values of this test."""
        filled = self._replaced(text)
        assert _OMITTED not in filled, f"The test has no value for {filled}"
        return filled

    def matches(self, shown: str, actual: str) -> bool:
        """Return whether a text is the shown one, with any characters at each `…`."""
        parts = self._replaced(shown.strip()).split(_OMITTED)
        return re.fullmatch("[^&]+".join(map(re.escape, parts)), actual) is not None

    def _next(self, heading: str) -> _Block:
        assert self._blocks, f"{heading} has no further block"
        assert self._blocks[0].heading == heading, self._blocks[0]
        return self._blocks.pop(0)

    def _replaced(self, text: str) -> str:
        names = sorted(self.replacements, key=len, reverse=True)
        pattern = "|".join(map(re.escape, names))
        return re.sub(pattern, lambda found: self.replacements[found[0]], text)

    def _check(self, shown: str, output: str) -> None:
        """Compare an output with the shown one, and remember its random values."""
        self._compare(json.loads(_PART_OF_JSON.sub(_as_member, shown)), json.loads(output), output)

    def _remember(self, printed: Mapping[str, Any]) -> None:
        """Use the random values of a response that the document does not show."""
        for shown, key in self._keys.items():
            if key in printed:
                self.replacements[shown] = printed[key]

    def _compare(self, shown: Any, printed: Any, output: str) -> None:
        if isinstance(shown, dict):
            keys = shown.keys() - {_OMITTED}
            assert keys <= printed.keys(), output
            assert _OMITTED in shown or keys == printed.keys(), output
            for key, value in shown.items():
                if key != _OMITTED:
                    self._compare_member(key, value, printed[key], output)
        elif isinstance(shown, list):
            assert len(shown) == len(printed), output
            for one, other in zip(shown, printed, strict=True):
                self._compare(one, other, output)
        else:
            expected = self.fill(shown) if isinstance(shown, str) else shown
            assert expected == printed, output

    def _compare_member(self, key: str, shown: Any, printed: Any, output: str) -> None:
        is_new = isinstance(shown, str) and _OMITTED in shown and shown not in self.replacements
        if key not in self._varying and not is_new:
            self._compare(shown, printed, output)
            return
        assert type(shown) is type(printed), output
        if isinstance(shown, str):
            start = _FIXED_START.match(self._replaced(shown))
            assert start is not None
            assert printed.startswith(start[0]), output
            self._keys[shown] = key
            self.replacements[shown] = printed


def _as_member(found: re.Match[str]) -> str:
    return f'"{_OMITTED}": null' if found[0] == _OMITTED else found[0]


def _blocks(text: str) -> Iterator[_Block]:
    heading = ""
    tokens = MarkdownIt("commonmark").parse(text)
    for token, following in zip(tokens, tokens[1:] + tokens[-1:], strict=True):
        if token.type == "heading_open":
            heading = following.content
        elif token.type == "fence":
            yield _Block(heading, token.info, token.content)
