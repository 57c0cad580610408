"""The addresses of the service and their access decorators, read from `addresses.txt`."""

from pathlib import Path
from typing import NamedTuple

_LIST = Path(__file__).with_suffix(".txt")
_INDENT = "    "


class Address(NamedTuple):
    """A method and a rule of the URL map, with its access (web/access/decorators.py)."""

    method: str
    rule: str
    mark: str

    def __str__(self) -> str:
        """Return the address as in the list, below its access."""
        return f"{self.mark}\n{_INDENT}{self.method:6} {self.rule}"


def listed_addresses() -> list[Address]:
    """Return all addresses of the list in its order."""
    found, mark = [], ""
    introduction, _, rest = _LIST.read_text(encoding="utf-8").partition("\n\n")
    assert introduction
    for line in rest.splitlines():
        if line.startswith(_INDENT):
            method, rule = line.split(maxsplit=1)
            found.append(Address(method, rule, mark))
        elif line:
            mark = line
    return found
