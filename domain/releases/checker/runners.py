"""Finds `gitlab-runner register` with a registration token, which requests POST /runners."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from domain.releases.checker.command_lines import Word
from domain.releases.checker.findings import Found
from domain.releases.schedule import BY_ID

#: The program, or its image behind `docker run`.
_PROGRAM = re.compile(r"(?:.*/)?gitlab-(?:ci-multi-)?runner(?::[\w.-]+)?")
_OPTION = "--registration-token"
#: Means the same behind `register` alone.
_SHORT = re.compile(r"-r(?:=.*)?|REGISTRATION_TOKEN=.*", re.DOTALL)
_CHANGE = BY_ID["runner-registration"]


def is_registration_option(text: str) -> bool:
    """Return whether a word is the option of a registration token, with or without its value."""
    return text == _OPTION or text.startswith(f"{_OPTION}=")


def runner_registration(words: Sequence[Word]) -> Iterator[Found]:
    """Yield what changes for a command that registers a runner."""
    registers = any(
        before.text and _PROGRAM.fullmatch(before.text[-200:]) and word.text == "register"
        for before, word in pairwise(words)
    )
    for word in words:
        if is_registration_option(word.text) or (registers and _SHORT.fullmatch(word.text)):
            yield Found(_CHANGE, word.line, f"gitlab-runner register with {_OPTION}")
            return
