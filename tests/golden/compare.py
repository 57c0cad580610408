"""Compares two recordings: `python -m tests.golden.compare <folder> <folder>`.

Differences are listed by address. Differences with a reason in `expected.toml` are counted, and
shown with `--all`. The exit status is 1 if there are others.
"""

import argparse
import gzip
import json
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

_EXPECTED = Path(__file__).with_name("expected.toml")
_MOST_LINES = 24
_MOST_TO_ALIGN = 3_000


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A different response to the same request."""

    key: str
    address: str
    #: Removed and added lines, with their signs.
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A kind of expected difference, and its reason."""

    requests: re.Pattern[str]
    #: Pattern that every different line matches.
    lines: re.Pattern[str]
    reason: str

    def is_of(self, difference: Difference) -> bool:
        """Return whether a difference is of this kind."""
        return bool(self.requests.search(difference.key)) and all(
            self.lines.search(line) for line in difference.lines
        )


def read_expected(text: str) -> list[Expected]:
    """Read the kinds of expected differences."""
    return [
        Expected(
            requests=re.compile(each["requests"]),
            lines=re.compile(each.get("lines", "")),
            reason=each["reason"],
        )
        for each in tomllib.loads(text).get("difference", [])
    ]


def differences(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> Iterator[Difference]:
    """Return the differences between two recordings."""
    for key in (*before, *(key for key in after if key not in before)):
        old, new = before.get(key, {}), after.get(key, {})
        if old != new:
            changed = tuple(_changed(_lines(old), _lines(new)))
            address = str((old or new)["address"])
            yield Difference(key=key, address=address, lines=changed)


def _changed(old: list[str], new: list[str]) -> Iterator[str]:
    if max(len(old), len(new)) < _MOST_TO_ALIGN:
        for line in unified_diff(old, new, lineterm="", n=0):
            if not line.startswith(("---", "+++", "@@")):
                yield line
        return
    # Aligning long documents, such as the description of the API, takes minutes each.
    gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
    yield from (f"-{line}" for line in gone.elements())
    yield from (f"+{line}" for line in come.elements())


def _lines(answer: Mapping[str, Any]) -> list[str]:
    return json.dumps(answer, indent=1, sort_keys=True, ensure_ascii=False).splitlines()


def read_recording(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the responses of a recording by the keys of their requests."""
    with gzip.open(folder / "answers.jsonl.gz", "rt", encoding="utf-8") as file:
        return {answer["key"]: answer for answer in map(json.loads, file)}


def report(found: Iterable[Difference]) -> Iterator[str]:
    """Return lines for a reader; requests of an address with the same difference are grouped."""
    by_address: dict[str, dict[tuple[str, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        case = each.key.removeprefix(each.address).strip()
        by_address[each.address][each.lines].append(case)
    for address, kinds in by_address.items():
        yield f"\n{address}"
        for lines, cases in kinds.items():
            more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
            yield f"  {cases[0]}{more}"
            yield from (f"    {line[:200]}" for line in lines[:_MOST_LINES])
            if len(lines) > _MOST_LINES:
                yield f"    … {len(lines) - _MOST_LINES} more lines"


def main() -> None:
    """Print the differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--all", action="store_true", help="show what is expected too")
    given = parser.parse_args()
    expected = read_expected(_EXPECTED.read_text(encoding="utf-8"))
    before, after = read_recording(given.before), read_recording(given.after)
    unexplained, counted = [], dict.fromkeys((each.reason for each in expected), 0)
    for difference in differences(before, after):
        reason = next((each.reason for each in expected if each.is_of(difference)), None)
        if reason is not None:
            counted[reason] += 1
        if reason is None or given.all:
            unexplained.append(difference)
    sys.stdout.writelines(f"{line}\n" for line in report(unexplained))
    for reason, count in counted.items():
        sys.stdout.write(f"\n{count} expected: {reason}")
    asked = len(before.keys() | after.keys())
    sys.stdout.write(f"\n{len(unexplained)} of {asked} requests are answered differently.\n")
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
