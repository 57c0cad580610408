"""Hooks that Schemathesis loads into its own process.

The environment names the instance under test (`tests/support/described/schemathesis.py`).
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import requests
import schemathesis

_ASKED = json.loads(os.environ["GATEBELL_DESCRIBED"])
#: Operations that end the token of the request, so each request gets a new token.
_ENDING = ("personal_access_tokens.revoke_self", "personal_access_tokens.rotate_self")
_READING = {"GET", "HEAD", "OPTIONS"}
#: A number that no row has.
_NOBODY = 2**31 - 1
_SETTINGS_PATH = "/api/v4/application/settings"
_OK = 200


@schemathesis.hook
def before_load_schema(context: Any, raw_schema: dict[str, Any]) -> None:
    """Forbid fields in responses that their schema does not name."""
    del context
    schemas = raw_schema["components"]["schemas"]
    for name in _reached_by_answers(raw_schema):
        if "properties" in schemas[name]:
            schemas[name].setdefault("additionalProperties", False)


def _reached_by_answers(document: dict[str, Any]) -> set[str]:
    operations = [each for path in document["paths"].values() for each in path.values()]
    found: set[str] = set()
    waiting = [each["responses"] for each in operations] + [document["components"]["responses"]]
    while waiting:
        for name in set(_references(waiting.pop())) - found:
            found.add(name)
            waiting.append(document["components"]["schemas"][name])
    return found


def _references(value: Any) -> Iterator[str]:
    """Return the names of the schemas that a part of the description refers to."""
    if isinstance(value, dict):
        reference = value.get("$ref", "")
        if isinstance(reference, str) and reference.startswith("#/components/schemas/"):
            yield reference.rpartition("/")[2]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Keep requests from ending the account and the token that all requests use."""
    del context, kwargs
    own = {"user_id": _ASKED["user_id"], "token_id": _ASKED["token_id"]}
    for name, value in own.items():
        given = (case.path_parameters or {}).get(name)
        if case.method not in _READING and str(given) == str(value):
            case.path_parameters[name] = _NOBODY
    operation_id = case.operation.definition.raw.get("operationId", "")
    if operation_id.startswith(_ENDING):
        for name, value in list((case.headers or {}).items()):
            if _ASKED["token"] in str(value):
                case.headers[name] = str(value).replace(_ASKED["token"], _new_token())


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    """Restore the settings of the instance, since some turn off features of later requests."""
    del context
    if case.method == "PUT" and case.path == _SETTINGS_PATH and response.status_code == _OK:
        _settings("PUT", json=_SETTINGS)


def _settings(method: str, **body: Any) -> Any:
    answer = requests.request(
        method,
        f"{_ASKED['url']}{_SETTINGS_PATH}",
        headers={"PRIVATE-TOKEN": _ASKED["token"]},
        timeout=20,
        **body,
    )
    return answer.json()


def _new_token() -> str:
    answer = requests.post(
        f"{_ASKED['url']}/api/v4/users/{_ASKED['user_id']}/personal_access_tokens",
        json={"name": "for once", "scopes": ["api"], "expires_at": "2027-06-01"},
        headers={"PRIVATE-TOKEN": _ASKED["token"]},
        timeout=20,
    )
    return str(answer.json()["token"])


#: Settings at the beginning.
_SETTINGS = _settings("GET")
