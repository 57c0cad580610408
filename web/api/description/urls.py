"""URLs of the map as OpenAPI paths with their parameters."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from werkzeug.routing import AnyConverter, BaseConverter, IntegerConverter, Map, PathConverter, Rule
from werkzeug.routing.rules import parse_converter_args

_VARIABLE = re.compile(r"<(?:(?P<converter>\w+)(?:\((?P<limits>.*?)\))?:)?(?P<name>\w+)>")
#: Names that clients know from GitLab's documentation.
_SHOWN_AS = {"reference": "id"}
_TEXTS = {
    "reference": (
        "The number of the {place}, or its full path with slashes as `%2F`, such as `acme%2Fshop`."
    ),
    "project_path": "The full path of the project, such as `acme/shop`. Slashes may stay slashes.",
    "slug": "The name of the integration in its URL, for people: it is not compared.",
    "endpoint_identifier": "Identifies the integration: 16 hexadecimal digits.",
    "iid": "The number of the alert or incident in its project.",
    "alert_iid": "The number of the alert in its project.",
    "uid": "The client_id.",
    "tag_name": "The name of the tag.",
    "sha": "The hash of the commit, with 40 or 64 digits.",
}
_PLACES = {"projects": "project", "groups": "group"}
#: Numbers of rows begin with it.
_FIRST_ID = 1


@dataclass(frozen=True, kw_only=True)
class Path:
    """A path of the description."""

    template: str
    parameters: tuple[dict[str, Any], ...]
    #: The choices that made this path of a rule with `<any(…):…>`.
    chosen: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Variable:
    """A variable in a rule."""

    text: str
    name: str
    converter: BaseConverter


def paths_of(rule: Rule, url_map: Map) -> Iterator[Path]:
    """Return the paths of a rule: one for each combination of its `<any(…):…>`."""
    variables = [_variable(found, url_map) for found in _VARIABLE.finditer(rule.rule)]
    choices = [each for each in variables if isinstance(each.converter, AnyConverter)]
    others = [each for each in variables if each not in choices]
    for chosen in product(*(_words(each.converter) for each in choices)):
        template = rule.rule
        for variable, word in zip(choices, chosen, strict=True):
            template = template.replace(variable.text, word)
        place = _place(template)
        for variable in others:
            template = template.replace(variable.text, f"{{{_shown(variable.name)}}}")
        parameters = tuple(_parameter(each, place) for each in others)
        yield Path(template=template, parameters=parameters, chosen=chosen)


def _variable(found: re.Match[str], url_map: Map) -> _Variable:
    args, limits = parse_converter_args(found["limits"] or "")
    kind = url_map.converters[found["converter"] or "default"]
    return _Variable(text=found[0], name=found["name"], converter=kind(url_map, *args, **limits))


def _words(converter: BaseConverter) -> list[str]:
    return sorted(converter.items) if isinstance(converter, AnyConverter) else []


def _shown(name: str) -> str:
    return _SHOWN_AS.get(name, name)


def _place(template: str) -> str:
    return next((word for part, word in _PLACES.items() if f"/{part}/" in template), "project")


def _parameter(variable: _Variable, place: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": _shown(variable.name),
        "in": "path",
        "required": True,
        "schema": _schema(variable.converter),
    }
    if text := _text(variable.name):
        found["description"] = text.format(place=place)
    return found


def _text(name: str) -> str:
    if name.endswith("_id"):
        return f"Identifies the {name.removesuffix('_id').replace('_', ' ')}."
    return _TEXTS.get(name, "")


def _schema(converter: BaseConverter) -> dict[str, Any]:
    if isinstance(converter, IntegerConverter):
        return {"type": "integer", "minimum": _FIRST_ID, "maximum": converter.max}
    if isinstance(converter, PathConverter) and type(converter) is not PathConverter:
        # Possessive quantifiers are Python's own.
        return {"type": "string", "pattern": f"^{converter.regex.replace('*+', '*')}$"}
    return {"type": "string", "minLength": 1}
