"""The schemas of bodies, answers and queries as JSON Schema of OpenAPI 3.1."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core.core_schema import WithDefaultSchema

_TEMPLATE = "#/components/schemas/{model}"
#: A request is read by a schema, a response is written by it: they may differ.
READ: Literal["validation"] = "validation"
WRITTEN: Literal["serialization"] = "serialization"
Mode = Literal["validation", "serialization"]


class _Writer(GenerateJsonSchema):
    """Leaves out titles of fields, and what stands for a field that is absent.

    That is every default in an answer, and in a request an empty text.
    """

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False for every field."""
        del schema
        return False

    def default_schema(self, schema: WithDefaultSchema) -> dict[str, Any]:
        """Return the schema of a field with a default."""
        if self.mode == WRITTEN or schema.get("default") == "":
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


class Schemas:
    """The schemas of all models of the description."""

    def __init__(self, models: Iterable[tuple[type[BaseModel], Mode]]) -> None:
        """Write the schemas of models that read and models that write."""
        wanted = list(dict.fromkeys(models))
        references, written = models_json_schema(
            wanted, ref_template=_TEMPLATE, schema_generator=_Writer
        )
        self._references = references
        self._written: dict[str, Any] = written["$defs"]
        self._in_parameters: set[str] = set()

    def reference(self, model: type[BaseModel], mode: Mode) -> dict[str, Any]:
        """Return the reference to a schema."""
        return self._references[model, mode]

    def properties(self, model: type[BaseModel]) -> tuple[Mapping[str, Any], frozenset[str]]:
        """Return the fields of a model that reads, and the names of required ones."""
        schema = self._written[self._name(model)]
        return schema.get("properties", {}), frozenset(schema.get("required", ()))

    def parameters(self, model: type[BaseModel]) -> list[dict[str, Any]]:
        """Return a model as the parameters of a query."""
        self._in_parameters.add(self._name(model))
        properties, required = self.properties(model)
        return [
            _parameter(name, schema, is_required=name in required)
            for name, schema in properties.items()
        ]

    def components(self) -> dict[str, Any]:
        """Return all schemas but those that became parameters."""
        return {
            name: schema
            for name, schema in sorted(self._written.items())
            if name not in self._in_parameters
        }

    def _name(self, model: type[BaseModel]) -> str:
        reference: str = self._references[model, READ]["$ref"]
        return reference.rpartition("/")[2]


def _parameter(name: str, schema: Mapping[str, Any], *, is_required: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": name,
        "in": "query",
        "schema": {key: each for key, each in schema.items() if key != "description"},
    }
    if is_required:
        found["required"] = True
    if text := schema.get("description"):
        found["description"] = text
    if schema.get("type") == "array":
        found |= {"style": "form", "explode": False}
    return found
