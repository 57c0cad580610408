"""JSON of monitoring systems inside the body of a request."""

from typing import Annotated, Any

import orjson
from pydantic import BeforeValidator, WithJsonSchema


def _as_text(value: Any) -> Any:
    """Return an object or an array as its JSON text, and everything else as it is."""
    if not isinstance(value, dict | list):
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError as error:
        message = "is nested too deep for JSON in JSON: give it as a text"
        raise ValueError(message) from error


#: JSON as a text, or written into the body itself. A text is kept as it is; otherwise numbers
#: beyond 64 bits are rounded, and of a name that occurs twice the last value counts.
JsonText = Annotated[
    str,
    BeforeValidator(_as_text),
    WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "array"}, {"type": "string"}]}),
]
