"""Parses request bodies as JSON (RFC 8259), and rejects bodies that would exhaust the parser."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import orjson

from domain.alerts.parsing.incoming_alert import UnreadableBodyError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_ALL_BYTES = bytes(range(256))
_NON_BRACKETS = bytes(byte for byte in _ALL_BYTES if byte not in b'[]{}"')
_DEPTH_STEPS = [1 if byte in b"[{" else -1 for byte in _ALL_BYTES]

#: Maximum number of digits in numbers that orjson parses. orjson rounds integers beyond 64 bits,
#: which could make two identifiers equal.
_MAX_EXACT_DIGITS = 18
_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_LONG_DIGIT_RUN = b"0" * (_MAX_EXACT_DIGITS + 1)
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**64 - 1

_TYPE_NAMES: dict[type, str] = {
    list: "an array",
    str: "a string",
    bool: "a boolean",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class LongNumber:
    """A number outside the range of 64-bit integers and floats, as written in the body."""

    text: str


def _parse_integer(text: str) -> int | LongNumber:
    # Check the length first, since int() rejects more than 4,300 digits and is slow below that.
    if len(text) > len(str(_MIN_INTEGER)):
        return LongNumber(text)
    number = int(text)
    return number if _MIN_INTEGER <= number <= _MAX_INTEGER else LongNumber(text)


def _parse_float(text: str) -> float | LongNumber:
    number = float(text)
    return number if abs(number) != float("inf") else LongNumber(text)


def _reject_constant(text: str) -> None:
    raise UnreadableBodyError(
        f"The body is not JSON: {text} is not a JSON number (RFC 8259 section 6)."
    )


_LENIENT_DECODER: Callable[[str], object] = json.JSONDecoder(
    parse_int=_parse_integer, parse_float=_parse_float, parse_constant=_reject_constant
).decode


def _extract_brackets(body: bytes) -> bytes:
    """Return the brackets in a body that are outside of strings.

    The result is exact up to the first invalid byte.
    """
    if b"\\" in body:
        # Replace backslashes first, since an escaped backslash does not escape the quote after it.
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(body.translate(None, _NON_BRACKETS).split(b'"')[::2])


def _compute_depth(body: bytes) -> int:
    """Return the nesting depth of arrays and objects, computed only from the brackets."""
    return max(accumulate(map(_DEPTH_STEPS.__getitem__, _extract_brackets(body))), default=0)


def _parse_leniently(body: bytes) -> object:
    """Parse JSON that orjson rejects, for example because of lone surrogates or large numbers.

    Raise UnreadableBodyError if the body is not valid JSON.
    """
    try:
        return _LENIENT_DECODER(body.decode())
    except UnicodeDecodeError as error:
        raise UnreadableBodyError("The body is not UTF-8 text (RFC 8259 section 8.1).") from error
    except json.JSONDecodeError as error:
        if b"\x00" in body:
            raise UnreadableBodyError(
                "The body is not JSON in UTF-8: it contains NUL bytes."
            ) from error
        raise UnreadableBodyError(
            f"The body is not JSON: {error.msg.removesuffix(' at')} "
            f"at line {error.lineno}, column {error.colno}."
        ) from error
    except RecursionError as error:
        raise UnreadableBodyError("The body is nested too deeply.") from error


def parse_body_object(body: bytes, *, nesting_limit: int) -> dict[str, object]:
    """Parse a body that contains one JSON object.

    Raise UnreadableBodyError if the body contains any other value.
    """
    return require_object(parse_json(body, nesting_limit=nesting_limit))


def require_object(value: object) -> dict[str, object]:
    """Return a parsed value if it is an object.

    Raise UnreadableBodyError otherwise.
    """
    if not isinstance(value, dict):
        name = _TYPE_NAMES.get(type(value), "a number")
        raise UnreadableBodyError(f"The body is {name}; a JSON object is expected.")
    return value


def parse_json(body: bytes, *, nesting_limit: int) -> object:
    """Parse a body that contains one JSON value.

    The outermost object or array is level 1 of the nesting. If a name occurs twice in an object,
    the last value is used. A byte order mark is ignored (RFC 8259 section 8.1), since some senders
    on Windows add it. Raise UnreadableBodyError if the body is not valid JSON or nested too deeply.
    """
    body = body.removeprefix(_BYTE_ORDER_MARK)
    if not body or body.isspace():
        raise UnreadableBodyError("The body is empty; a JSON object is expected.")
    # Most bodies have fewer brackets than the limit, so the depth need not be computed.
    if body.count(b"{") + body.count(b"[") > nesting_limit and _compute_depth(body) > nesting_limit:
        raise UnreadableBodyError(f"The body is nested deeper than {nesting_limit} levels.")
    if _LONG_DIGIT_RUN in body.translate(_DIGITS_TO_ZERO):
        return _parse_leniently(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return _parse_leniently(body)
