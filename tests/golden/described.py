"""Creates valid and invalid bodies from the OpenAPI description."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.golden.values import BAD, LEFT_OUT, good_value

_MOST_PROPERTIES = 14


class Description:
    """Descriptions of request bodies."""

    def __init__(self, described: Any) -> None:
        """Take the document at /api/openapi.json."""
        self._described = described
        self._by_shape: dict[tuple[str, str], dict[str, Any]] = {
            (method.upper(), _shape(path)): operation
            for path, operations in self._described["paths"].items()
            for method, operation in operations.items()
            if method in {"post", "put", "patch", "delete"}
        }

    def _properties(self, method: str, path: str) -> dict[str, Any]:
        operation = self._by_shape.get((method, _shape(path)), {})
        body: dict[str, Any] = operation.get("requestBody", {"content": {}})
        contents: list[dict[str, Any]] = list(body["content"].values())
        schema = contents[0]["schema"] if contents else {}
        properties: dict[str, Any] = self._resolved(schema).get("properties", {})
        return properties

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            found = self._described
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        return schema

    def good_body(self, method: str, path: str) -> dict[str, Any]:
        """Return a body in which all known fields are valid."""
        known = {
            name: good_value(name, path)
            for name in self._properties(method, path)
            if name not in LEFT_OUT
        }
        if "ends_at" in known and "duration" in known:
            del known["ends_at"]
        if "user_id" in known and "username" in known:
            del known["user_id"]
        return {"json": {name: value for name, value in known.items() if value is not None}}

    def bad_bodies(self, method: str, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Return requests with one mistake each, with a name for the mistake."""
        properties = list(self._properties(method, path))
        if not properties:
            return
        fields = self.good_body(method, path)["json"]
        yield " empty", {"body": {"json": {}}}
        yield " array", {"body": {"json": [1]}}
        json_type = {"Content-Type": "application/json"}
        yield " broken", {"body": {"text": "{not json"}, "headers": json_type}
        yield " unknown", {"body": {"json": {**fields, "unknown": 1}}}
        plain = {name: value for name, value in fields.items() if _is_plain(value)}
        yield " as form", {"body": {"form": plain}}
        for number, name in enumerate(properties[:_MOST_PROPERTIES]):
            for bad in (BAD[0], BAD[1 + number % (len(BAD) - 1)]):
                body = {"json": {**fields, name: bad}}
                yield f" {name}={json.dumps(bad, ensure_ascii=False)}", {"body": body}


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _shape(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)
