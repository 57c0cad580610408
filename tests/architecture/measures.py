"""Measures what makes changes to the code long: `make measures`.

`python -m tests.architecture.measures [--idle] [<checkout>]` measures any checkout, so that a state
can be compared with an earlier one. `tests/architecture/ways.py` counts functions for the four
requests.
"""

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.architecture.idle_host import watch_idle

ROOT = Path(__file__).parents[2]
PRODUCT = ("web", "domain", "blueprints", "forms", "models")

#: Use cases with their own rules for transactions and events: requests that arrive thousands of
#: times a second, and requests of OAuth clients.
HOT_PATHS = (
    "domain/alerts/receiving/",
    "domain/alerts/storing/",
    "domain/heartbeats/pings.py",
    "domain/oauth/authorization.py",
    "domain/oauth/clients/credential_lookup.py",
    "domain/oauth/device_authorizations.py",
    "domain/oauth/endpoints.py",
    "domain/oauth/grants/",
    "domain/oauth/token_authentication/",
    "domain/oauth/registration.py",
    "domain/oauth/tokens.py",
)
#: Places where actions and the access decorators of views check permissions and states.
MARKS = ("domain/access/checks.py", "web/access/", "web/api/operations.py")
#: Places where alert formats are declared.
FORMATS = ("domain/alerts/formats/", "domain/alerts/integration_type.py")
DECLARED_TYPES = {"EXTERNAL", "HTTP", "PROMETHEUS"}
#: Decorators that mark a function as an action (`domain/access/actions.py`).
MARKED = {"action", "read_action"}
STATE_CHECKS = {"check_not_archived", "check_feature"}
PERMISSION_CHECKS = {"check_allowed", "check_role", "get_project_for", "get_group_for"}
MOST_MODULES = 25


class Field(NamedTuple):
    """A field whose lines are counted, in the files whose path contains a word."""

    name: str
    word: str


FIELDS = (
    Field("grace", "heartbeat"),
    Field("comment", "silence"),
    Field("resolve_after_minutes", ""),
)


class Checkout:
    """The files of a checkout that Git tracks."""

    def __init__(self, root: Path) -> None:
        self.root = root
        listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
        names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout
        self.files = [name for name in sorted(set(names.splitlines())) if (root / name).is_file()]

    def modules(self, *folders: str) -> list[str]:
        """Return the names of the modules below some folders."""
        return [
            name
            for name in self.files
            if name.endswith(".py") and name.partition("/")[0] in folders
        ]

    def text(self, name: str) -> str:
        """Return the content of a file."""
        return (self.root / name).read_text(encoding="utf-8")

    def lines(self, *folders: str) -> int:
        """Count the lines of the modules below some folders."""
        return sum(self.text(name).count("\n") for name in self.modules(*folders))


def lines_of_field(checkout: Checkout, field: Field) -> dict[str, int]:
    """Count the lines of each file that name a field, without comments and prose."""
    found = {}
    for name in checkout.files:
        if field.word not in name:
            continue
        if name in checkout.modules(*PRODUCT):
            found[name] = len(set(_lines_naming(field.name, checkout.text(name))))
        elif name.startswith("templates/"):
            found[name] = sum(field.name in line for line in checkout.text(name).splitlines())
    return {name: count for name, count in found.items() if count}


def _lines_naming(field: str, source: str) -> Iterator[int]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_name = token.type == tokenize.NAME and token.string == field
        is_text = token.type == tokenize.STRING and token.string.strip("\"'") == field
        if is_name or is_text:
            yield token.start[0]


def calls_outside(checkout: Checkout, called: set[str], allowed: Iterable[str]) -> list[str]:
    """Return calls of some functions in product code, outside of actions and `allowed`."""
    return [
        f"{name}:{node.lineno}"
        for name in checkout.modules(*PRODUCT)
        if not _is_action(name) and not name.startswith(tuple(allowed))
        for node in _outside_actions(ast.parse(checkout.text(name)))
        if isinstance(node, ast.Call) and _name_of(node.func) in called
    ]


def _is_action(name: str) -> bool:
    parts = name.split("/")
    return parts[0] == "domain" and (parts[-1].endswith("actions.py") or "actions" in parts)


def _outside_actions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a node, without functions that are marked as actions."""
    for child in ast.iter_child_nodes(node):
        marks = getattr(child, "decorator_list", ())
        if any(isinstance(each, ast.Call) and _name_of(each.func) in MARKED for each in marks):
            continue
        yield child
        yield from _outside_actions(child)


def _name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def comparisons_of_types(checkout: Checkout) -> list[str]:
    """Return comparisons of integration types in product code outside of the registry."""
    return [
        f"{name}:{node.lineno}"
        for name in checkout.modules(*PRODUCT)
        if not name.startswith(FORMATS)
        for node in _nodes_if_named(checkout.text(name), "IntegrationType", *DECLARED_TYPES)
        if isinstance(node, ast.Compare) and _names_type(node)
    ]


def _nodes_if_named(text: str, *names: str) -> Iterator[ast.AST]:
    """Yield the nodes of a module that contains one of some names.

    Other modules are not parsed, because parsing all modules takes seconds.
    """
    if re.search(rf"\b(?:{'|'.join(names)})\b", text):
        yield from ast.walk(ast.parse(text))


def _names_type(node: ast.Compare) -> bool:
    parts = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
    return any(
        (isinstance(part, ast.Attribute) and _name_of(part.value) == "IntegrationType")
        or (isinstance(part, ast.Name) and part.id in DECLARED_TYPES)
        for part in parts
    )


def files_of_silences(checkout: Checkout) -> list[str]:
    """Return the files of the product whose name or folder contains "silence"."""
    folders = (*PRODUCT, "templates")
    return [
        name
        for name in checkout.files
        if name.partition("/")[0] in folders and "silence" in name and _has_content(checkout, name)
    ]


def _has_content(checkout: Checkout, name: str) -> bool:
    return bool(checkout.text(name).strip())


def crowded_folders(checkout: Checkout) -> dict[str, int]:
    """Return folders with more modules than a reader can take in at a glance."""
    counted = Counter(
        str(Path(name).parent)
        for name in checkout.modules(*PRODUCT, "tests", "bench", "demo", "migrations")
        if not name.endswith("/__init__.py")
    )
    return {folder: count for folder, count in counted.most_common() if count > MOST_MODULES}


_IMPORTERS = """
import grimp, json, sys
packages = sys.argv[1:]
graph = grimp.build_graph(*packages, cache_dir=None)
json.dump({m: len(graph.find_modules_that_directly_import(m)) for m in graph.modules}, sys.stdout)
"""


def modules_with_one_importer(checkout: Checkout) -> list[str]:
    """Return the modules of the product that exactly one other module imports."""
    done = subprocess.run(
        (sys.executable, "-c", _IMPORTERS, *PRODUCT),
        cwd=checkout.root,
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(name for name, count in json.loads(done.stdout).items() if count == 1)


def ways(checkout: Checkout) -> dict[str, int]:
    """Count the functions of the project that run for each of the four requests."""
    done = subprocess.run(
        (sys.executable, "-m", "tests.architecture.ways", str(checkout.root)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(checkout: Checkout) -> dict[str, object]:
    """Return all measures that need no waiting, by name."""
    silences = files_of_silences(checkout)
    found: dict[str, object] = {
        "lines of product": checkout.lines(*PRODUCT),
        **{f"  {folder}": checkout.lines(folder) for folder in PRODUCT},
        "lines of tests": checkout.lines("tests"),
    }
    for field in FIELDS:
        lines = lines_of_field(checkout, field)
        found[f"lines that name `{field.name}`"] = f"{sum(lines.values())} in {len(lines)} files"
    found |= {
        "files named after silences / folders": (
            f"{len(silences)} / {len({str(Path(name).parent) for name in silences})}"
        ),
        "record_event outside actions and hot paths": len(
            calls_outside(checkout, {"record_event"}, HOT_PATHS)
        ),
        "comparisons of an integration's type": len(comparisons_of_types(checkout)),
        "checks of state outside actions and marks": len(
            calls_outside(checkout, STATE_CHECKS, MARKS)
        ),
        "checks of permission outside actions and marks": len(
            calls_outside(checkout, PERMISSION_CHECKS, MARKS)
        ),
        f"folders with more than {MOST_MODULES} modules": (
            ", ".join(f"{folder} {count}" for folder, count in crowded_folders(checkout).items())
            or 0
        ),
        "modules / with one importer": (
            f"{len(checkout.modules(*PRODUCT))} / {len(modules_with_one_importer(checkout))}"
        ),
    }
    return found | {
        f"functions that run for {name}": count for name, count in ways(checkout).items()
    }


def main() -> None:
    """Print the measures of a checkout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--idle", action="store_true", help="watch an idle host for a minute too")
    given = parser.parse_args()
    checkout = Checkout(given.checkout.resolve())
    found = measured(checkout)
    if given.idle:
        idle = watch_idle(checkout.root)
        found["processor time of an idle host"] = f"{idle.share:.2%}"
        found["memory of an idle web process / host (PSS)"] = (
            f"{idle.web_mib:.0f} / {idle.all_mib:.0f} MiB"
        )
    width = max(map(len, found))
    for name, value in found.items():
        sys.stdout.write(f"{name:<{width}}  {value}\n")


if __name__ == "__main__":
    main()
