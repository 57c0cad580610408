"""Reads the entities of an export by schemas that ignore what they do not need."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from domain.alerts.reading.text import storable
from domain.importing.plan import LeftOut

_LONGEST = 10_000
_SHOWN_NAME = 100


def _text(value: Any) -> Any:
    """Return a text that can be stored; null is an empty one, and a number its digits."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return storable(value)[:_LONGEST].strip() if isinstance(value, str) else value


def _listed(value: Any) -> Any:
    return () if value is None else value


Text = Annotated[str, BeforeValidator(_text)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_listed)]


class Entity(BaseModel):
    """The base of what an export has."""

    model_config = ConfigDict(extra="ignore", frozen=True)


Found = TypeVar("Found", bound=Entity)


class EntityReader:
    """Reads entities, and collects why some are left out."""

    def __init__(self, left_out: list[LeftOut]) -> None:
        """Take the list of what is left out."""
        self.left_out = left_out

    def all(self, schema: type[Found], values: Iterable[object], kind: str) -> list[Found]:
        """Return the entities that fit a schema."""
        found = []
        for value in values:
            try:
                found.append(schema.model_validate(value))
            except ValidationError as error:
                self.left_out.append(LeftOut(kind=kind, name=name_of(value), reason=_why(error)))
        return found


def _why(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"The export is not as expected: {where + ': ' if where else ''}{first['msg']}."


def name_of(value: object) -> str:
    """Return the name of any entity, or an empty text."""
    if not isinstance(value, Mapping):
        return ""
    for key in ("name", "username", "id"):
        if isinstance(value.get(key), str):
            return storable(value[key])[:_SHOWN_NAME]
    nested = [each for each in value.values() if isinstance(each, Mapping)]
    return name_of(nested[0]) if nested else ""


def items_of(value: object) -> Sequence[object]:
    """Return the items of a list, or of a page of the API: `{"results": […]}`."""
    if isinstance(value, Mapping):
        for key in ("results", "data"):
            if isinstance(value.get(key), list):
                items: list[object] = value[key]
                return items
        return ()
    return value if isinstance(value, list) else ()
