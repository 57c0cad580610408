"""The OpenAPI document of the service, stored in `openapi.json`.

A test compares the stored document with the current one, so every change of the published API is
visible in the diff of a commit. `make docs` updates the file.
"""

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

STORED_AT = Path(__file__).with_suffix(".json")
#: Base URL of the service in the stored document.
EXAMPLE_URL = "https://gatebell.example"
_MAX_WIDTH = 118
#: Maximum number of lines in the message of a failed comparison.
_MAX_DIFF_LINES = 80
_Operations = Mapping[tuple[str, str], "DescribedOperation"]


class DescribedOperation(NamedTuple):
    """An operation of the document."""

    name: str
    method: str
    path: str
    #: Names of the query parameters and of the fields of the body.
    parameters: tuple[str, ...]
    #: Scopes and role that the caller needs. Empty for endpoints outside the API.
    requirement: str


@cache
def read_stored_operations() -> tuple[DescribedOperation, ...]:
    """Return the operations of the stored document."""
    return tuple(list_operations(json.loads(STORED_AT.read_text(encoding="utf-8"))))


def list_operations(document: Mapping[str, Any]) -> Iterator[DescribedOperation]:
    """Yield the operations of a document."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield DescribedOperation(
                name=operation["operationId"],
                method=method.upper(),
                path=path,
                parameters=tuple(dict.fromkeys(_list_parameters(operation, document))),
                requirement=_find_requirement(operation.get("description", "")),
            )


def _find_requirement(description: str) -> str:
    """Return the text after `Requires` in the last paragraph of a description."""
    beginning, _, requirement = description.rpartition("\n")[2].partition("Requires ")
    return "" if beginning else requirement.removesuffix(".")


def _list_parameters(operation: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[str]:
    for each in operation["parameters"]:
        parameter = _resolve(each, document)
        if parameter["in"] == "query":
            yield from _list_spellings(parameter["name"], parameter["schema"])
    for content in operation.get("requestBody", {}).get("content", {}).values():
        for name, each in _list_properties(content["schema"], document):
            yield from _list_spellings(name, each)


def _list_properties(
    part: Mapping[str, Any], document: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    schema = _resolve(part, document)
    yield from schema.get("properties", {}).items()
    for kind in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(kind, ()):
            yield from _list_properties(each, document)


def _list_spellings(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of a parameter. Names of lists can end with brackets, as in GitLab's API."""
    yield name
    if any(each.get("type") == "array" for each in (schema, *schema.get("anyOf", ()))):
        yield f"{name}[]"


def _resolve(part: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in part:
        return part
    found: Any = document
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return _resolve(found, document)


def format_document(part: Any, *, indent: int = 0, used: int = 0) -> str:
    """Return indented JSON, in which objects and lists that fit on a line are not divided."""
    line = json.dumps(part, ensure_ascii=False)
    if not isinstance(part, dict | list) or indent + used + len(line) <= _MAX_WIDTH:
        return line
    inner = indent + 1
    if isinstance(part, list):
        brackets = "[]"
        lines = [format_document(each, indent=inner) for each in part]
    else:
        brackets = "{}"
        keys = {f"{json.dumps(name)}: ": each for name, each in part.items()}
        lines = [
            key + format_document(each, indent=inner, used=len(key)) for key, each in keys.items()
        ]
    joined = ",\n".join(f"{' ' * inner}{each}" for each in lines)
    return f"{brackets[0]}\n{joined}\n{' ' * indent}{brackets[1]}"


def find_differences(document: Mapping[str, Any]) -> str:
    """Return the diff between the stored document and another one, or an empty string."""
    stored = STORED_AT.read_text(encoding="utf-8").splitlines()
    current = format_document(document).splitlines()
    if stored == current:
        return ""
    diff = unified_diff(stored, current, "stored", "current", n=2, lineterm="")
    return "\n".join(islice(diff, _MAX_DIFF_LINES))


def list_changed_requirements(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the operations that need other scopes or roles than in the stored document."""
    before = {(each.path, each.method): each for each in read_stored_operations()}
    after = {(each.path, each.method): each for each in list_operations(document)}
    for place in sorted(before.keys() | after.keys()):
        old, new = _describe_requirement(before, place), _describe_requirement(after, place)
        if old != new:
            path, method = place
            yield f"{method} {path}: {old} -> {new}"


def _describe_requirement(operations: _Operations, place: tuple[str, str]) -> str:
    if place not in operations:
        return "no operation"
    return operations[place].requirement or "no requirement"
