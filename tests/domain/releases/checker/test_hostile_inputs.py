"""Checks of any input take time proportional to its size, and report no content of it."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from types import FrameType
from typing import Any, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.releases.checker import findings
from domain.releases.checker.findings import CheckTimeoutError, UnreadableContentError
from domain.releases.checker.text_checks import check_file, check_text
from tests.domain.releases.checker.examples import BREAKS
from tests.support.wire.garbage import bounded

_NAMES = (
    *("a.har", "access.log", "requests.txt", "a.graphql", ".gitlab-ci.yml", "a.py", "a.js"),
    *("a.sh", "a.php", "a.json", "notes", ""),
)
#: Parts of generated inputs: text that opens, repeats or ends something in one of the formats.
_PARTS = (
    *("[", "{", "(", "]", "}", ")", '"', "'", "`", "\\", "/*", "#", "//", "\n", " ", "$(", "${"),
    *('"""', "{a", "{a:", "- ", "? ", "&a ", "*a ", "!a ", "a: ", "k: v, ", "| ", '{"a":'),
    *("[*a,*a],\n", "a.", "a(", "x=get(", "for x in ", "gl.users.list(", "await ", "+'x'"),
    *("endpoint`", "let a;", "curl ", "-X", "-d a=b ", "\\\n", "GET ", "/aa", "users/", "a=b&"),
    *("GET /api/v4/users?page=2\n", "operations_access_level ", "TLSv1 ", "query{", "'query{'"),
    *("#{", "%s", "{0}", "/*/", "--", '{"log":{"entries":[', '{"request":{"url":"', "1e400,"),
    *("\\u0041", "\\ud800", "é", "\u202e", "\ufeff"),
)


class _StepCounter:
    """Counts the lines of Python and calls in a block, since time would depend on the machine."""

    count = 0

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_error: object) -> None:
        sys.settrace(self._before)

    def _trace(self, _frame: FrameType, _event: str, _arg: Any) -> Any:
        self.count += 1
        return self._trace


def _steps(work: Callable[[], Any]) -> int:
    with _StepCounter() as steps:
        work()
    return steps.count


def _check(name: str, content: bytes) -> None:
    try:
        check_file(name, content)
    except UnreadableContentError as error:
        assert str(error)  # noqa: PT017 - one of the two outcomes


#: Settings without a deadline, because machines may be busy.
_patient = settings(deadline=None)
_SECRET = "glpat-Zq8sVt3Xk1LmNp7RwYbC"


@pytest.mark.long
@pytest.mark.parametrize("name", _NAMES)
def test_a_bomb_is_checked_in_limited_steps(name: str) -> None:
    for part in _PARTS:
        _check(name, (part * (1_500 // len(part))).encode("utf-8", "replace"))


@pytest.mark.parametrize("name", ["a.har", "a.graphql", "a.yml", "a.py", "a.js", "a.sh", "a.txt"])
@pytest.mark.parametrize(
    "part", ["x=get(", "gl.users.list(", "[", "{a", "- [", "a: ", "'", "curl -d a=b ", "a.b(c)\n"]
)
def test_steps_are_proportional_to_the_size(name: str, part: str) -> None:
    small, large = (part * each for each in (150, 600))
    fewer = _steps(lambda: _check(name, small.encode()))
    more = _steps(lambda: _check(name, large.encode()))
    assert more <= 6 * fewer + 5_000


#: Inputs that take long for their size: a megabyte takes 1.5 to 3 seconds.
_LONG = (
    *(("a.py", "["), ("a.js", "("), ("a.js", "`query{a}`;"), ("a.js", "let a;")),
    *(("a.php", "$a->b("), ("a.sh", "$("), ("a.sh", "curl -d a=b x\n"), ("a.yml", "- k: v\n")),
    *(("a.yml", "- |\n  curl x\n"), ("a.har", '{"log":{"entries":['), ("a.json", "1,")),
    ("a.http", "GET /a\nA: b\n\n{}\n"),
)


@pytest.mark.long
@pytest.mark.parametrize(("name", "part"), _LONG)
def test_the_time_limit_is_checked_often(
    name: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked_at: list[int] = []

    def read_clock() -> float:
        checked_at.append(steps.count)
        return 0

    with suppress(UnreadableContentError):
        check_text(name, part)  # imports the parser
    monkeypatch.setattr(findings, "thread_time", read_clock)
    with _StepCounter() as steps, suppress(UnreadableContentError):
        check_text(name, part * (40_000 // len(part)), seconds=1)
    gaps = [later - earlier for earlier, later in pairwise([*checked_at, steps.count])]
    # A megabyte has millions of steps.
    assert max(gaps) < 20_000


@pytest.mark.long
def test_a_text_that_takes_too_long_is_an_error() -> None:
    aliases = "a: &a x\n" + "".join(f"k{number}: *a\n" for number in range(100_000))
    for name, text in (("a.yml", aliases), ("a.js", "f(" * 300_000), ("a.py", "x = 1\n" * 99_999)):
        with pytest.raises(CheckTimeoutError, match="gatebell releases check"):
            check_text(name, text, seconds=0.1)


@pytest.mark.long
@_patient
@given(name=st.sampled_from(_NAMES), content=st.binary(max_size=400))
def test_any_bytes_are_checked_or_rejected(name: str, content: bytes) -> None:
    _check(name, content)


@pytest.mark.long
@_patient
@given(
    name=st.sampled_from(_NAMES),
    parts=st.lists(st.sampled_from(_PARTS) | st.text(max_size=6), max_size=60),
)
def test_any_text_is_checked_or_rejected(name: str, parts: list[str]) -> None:
    _check(name, "".join(parts).encode("utf-8", "replace"))


@pytest.mark.long
@_patient
@given(example=st.sampled_from(BREAKS), at=st.integers(0, 400), part=st.sampled_from(_PARTS))
def test_malformed_examples_are_checked_or_rejected(example: Any, at: int, part: str) -> None:
    text = example.content[:at] + part + example.content[at:]
    _check(example.name, text.encode("utf-8", "replace"))


@pytest.mark.long
@bounded(30)
@given(value=st.recursive(st.none() | st.text() | st.floats() | st.integers(), st.lists))
def test_json_is_parsed_as_by_the_standard_library(value: Any) -> None:
    from domain.releases.checker.json_documents import parse_json_with_line_numbers  # noqa: PLC0415 - only used here

    text = json.dumps({"a": value}, allow_nan=False) if _is_finite(value) else "{}"
    assert _plain(parse_json_with_line_numbers(text).value) == json.loads(text)


def _is_finite(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_finite(each) for each in value)
    return not isinstance(value, float) or abs(value) < float("inf")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each.value) for name, each in value.items()}
    return [_plain(each.value) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "text",
    ["{", "[1,]", '{"a":}', '{"a" 1}', '{"a":1,}', "[1 2]", "{1:2}", "[1}", "1x", '"\x01"', "[] 1"],
)
def test_invalid_json_is_rejected(text: str) -> None:
    with pytest.raises(UnreadableContentError):
        check_file("a.har", text.encode())


@pytest.mark.parametrize("example", BREAKS, ids=lambda each: f"{each.change} {each.name}")
def test_the_report_contains_no_secrets_of_the_input(example: Any) -> None:
    noisy = (
        example.content.replace("gatebell.example", f"{_SECRET}.example")
        .replace("page=2", f"page=2&private_token={_SECRET}")
        .replace("projects/7", f"projects/{_SECRET}")
        .replace("$T", _SECRET)
    )
    assert _SECRET not in repr(check_file(example.name, noisy.encode()))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.har", '{"a": "SECRET'),
        ("a.har", '{"log": "SECRET"}'),
        ("a.yml", "SECRET: ["),
        ("a.yml", "a: *SECRET]"),
        ("a.graphql", "query SECRET { ) ]"),
        ("a.graphql", '{ a(b: "SECRET'),
        ("a.http", "SECRET"),
        ("access.log", "SECRET"),
        ("a.py", "SECRET\x00"),
        ("a.py", "SECRET("),
        ("a.json", "{SECRET"),
    ],
)
def test_errors_contain_no_secrets_of_the_input(name: str, text: str) -> None:
    with pytest.raises(UnreadableContentError) as raised:
        check_file(name, text.replace("SECRET", _SECRET).encode())
    assert _SECRET not in f"{raised.value}{raised.value.__cause__}"
