"""The OpenAPI description is complete, valid and current."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Any
from urllib.parse import urljoin

import pytest
import requests
from flask import Flask

from domain.releases.call_matches import find_call_matches
from domain.releases.changes import ReleaseChangeKind
from domain.releases.schedule import SCHEDULE
from tests.support.service.live import NewService, running
from tests.support.wire.openapi import EXAMPLE_URL, find_differences
from web.api.openapi.view_descriptions import find_view_description
from web.api.operations import Operation
from web.http.endpoints import ApiClientBlueprint, find_access_decorator

pytestmark = pytest.mark.one_database("sqlite")

#: Reasons why endpoints for programs are not described, by the first part of their names.
LEFT_OUT = {
    "acknowledgement.": "pages for people who are not signed in",
    "app_files.": "files and requests of the installed app, which only its own scripts use",
    "api_description.graphql": "there is none, which is all that it says",
    "git.": "Git's own protocol, which carries no JSON",
    "health.metrics": "the text format of Prometheus",
    "registry_tokens.certificates": "certificates in PEM",
    "openid.jwks": "an older URL of /oauth/discovery/keys, which release 17.0 removed",
    "openid.picture": "a picture",
}


@pytest.fixture(scope="module")
def url(new_service: NewService) -> Iterator[str]:
    """URL of the description; one app serves it to all tests, since building it takes seconds."""
    with running(new_service(only="app")) as live:
        yield f"{live.url}/api/openapi.json"


@pytest.fixture
def answer(url: str) -> requests.Response:
    return requests.get(url, timeout=60)


@pytest.fixture
def document(answer: requests.Response) -> dict[str, Any]:
    assert answer.status_code == 200
    found = answer.json()
    assert isinstance(found, dict)
    return found


def is_described(app: Flask, name: str) -> bool:
    view = app.view_functions[name]
    return find_view_description(view) is not None or isinstance(
        find_access_decorator(view), Operation
    )


def test_endpoints_for_programs_are_described_or_left_out_with_a_reason(app: Flask) -> None:
    undescribed = {
        name
        for name in app.view_functions
        if isinstance(app.blueprints.get(name.partition(".")[0]), ApiClientBlueprint)
        and not is_described(app, name)
    }
    assert [name for name in undescribed if not name.startswith(tuple(LEFT_OUT))] == []
    stale = [each for each in LEFT_OUT if not any(name.startswith(each) for name in undescribed)]
    assert stale == []


def test_the_stored_description_is_current(url: str, answer: requests.Response) -> None:
    base_url = url.removesuffix("/api/openapi.json")
    differences = find_differences(json.loads(answer.text.replace(base_url, EXAMPLE_URL)))
    assert differences == "", f"The published API has changed, run `make docs`:\n{differences}"


def test_the_description_of_a_tag_contains_what_its_operations_refer_to(
    url: str, document: dict[str, Any]
) -> None:
    tags = [each["name"] for each in document["tags"]]
    assert "On call handoff notes" in tags
    for tag in tags:
        answer = requests.get(url, params={"tag": tag}, timeout=60)
        assert len(answer.content) < 250_000
        part = answer.json()
        for kind in ("paths", "webhooks"):
            assert part[kind] == {
                path: found
                for path, methods in document[kind].items()
                if (found := {k: v for k, v in methods.items() if tag in v["tags"]})
            }
        for kind, name in re.findall(r'"#/components/(\w+)/([^"]+)"', answer.text):
            assert part["components"][kind][name] == document["components"][kind][name]
    unknown = requests.get(url, params={"tag": "Nothing"}, timeout=60)
    assert (unknown.status_code, unknown.json()["message"]) == (
        404,
        "404 Not Found: No operation has this tag.",
    )


@pytest.mark.long
def test_the_description_is_valid(document: dict[str, Any]) -> None:
    # Loading it takes seconds, and each process of xdist imports all test files.
    openapi = import_module("openapi_spec_validator")
    validator = openapi.OpenAPIV31SpecValidator(document)
    assert [error.message for error in validator.iter_errors()] == []


def test_every_operation_has_a_unique_name_and_a_title(document: dict[str, Any]) -> None:
    operations = [each for path in document["paths"].values() for each in path.values()]
    named = Counter(each["operationId"] for each in operations)
    assert [name for name, count in named.items() if count > 1] == []
    assert [each["operationId"] for each in operations if not each["summary"]] == []


def test_every_part_of_the_description_is_used(
    document: dict[str, Any], answer: requests.Response
) -> None:
    text = answer.text
    schemes = document["components"].pop("securitySchemes")
    unused = [
        f"{kind}/{name}"
        for kind, parts in document["components"].items()
        for name in parts
        if f'"#/components/{kind}/{name}"' not in text
    ]
    assert unused == []
    assert [name for name in schemes if f'{{"{name}":[' not in text] == []


def test_models_of_the_same_name_do_not_hide_each_other(document: dict[str, Any]) -> None:
    # Pydantic prefixes the name of the module if two models have the same name.
    assert [name for name in document["components"]["schemas"] if "__" in name] == []


def test_operations_of_projects_and_groups_describe_redirects(document: dict[str, Any]) -> None:
    found = [
        (method, "302" in each["responses"], "405" in each["responses"])
        for path, methods in document["paths"].items()
        if re.match(r"/api/v4/(projects|groups)/\{id\}", path)
        for method, each in methods.items()
    ]
    assert set(found) == {("get", True, False)} | {
        (method, False, True) for method in ("post", "put", "patch", "delete")
    }


@pytest.mark.long
def test_the_response_to_an_overlong_url_matches_its_description(
    new_service: NewService, document: dict[str, Any]
) -> None:
    described = document["components"]["responses"]["URITooLong"]["content"]["application/json"]
    model = described["schema"]["$ref"].removeprefix("#/components/schemas/")
    with running(new_service(only="web")) as live:
        answer = requests.get(f"{live.url}/api/v4/groups?search={'x' * 9_000}", timeout=60)
    assert answer.status_code == 414
    assert set(answer.json()) == set(document["components"]["schemas"][model]["required"])


@pytest.mark.parametrize(
    "name", ["oauth-authorization-server", "openid-configuration", "oauth-protected-resource"]
)
def test_the_metadata_of_the_server_is_described(
    url: str, document: dict[str, Any], name: str
) -> None:
    path = f"/.well-known/{name}"
    described = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]
    model = described["schema"]["$ref"].removeprefix("#/components/schemas/")
    schema = document["components"]["schemas"][model]
    metadata = requests.get(urljoin(url, path), timeout=60).json()
    assert set(schema["required"]) <= set(metadata) <= set(schema["properties"])


def test_the_description_is_not_sent_again_to_a_client_with_its_etag(
    url: str, answer: requests.Response
) -> None:
    known = {"If-None-Match": answer.headers["ETag"]}
    again = requests.get(url, headers=known, timeout=60)
    assert (again.status_code, again.content) == (304, b"")


#: First words of summaries: imperatives.
_VERBS = (
    "Accept Acknowledge Activate Add Approve Archive Assign Change Check Comment Confirm Create "
    "Deactivate Delete Disconnect End Escalate Export Extend Identify Invite Issue Link List Lock "
    "Open Page Pause Preview Process Queue Receive Recognize Redirect Refresh Register Reject "
    "Remove Replace Report Reprocess Reset Resume Return Revoke Rotate Renew Save Send Share Show "
    "Sign Snooze Stop Store Summarize Swap Test Transfer Unarchive Undo Unlink Unlock"
)
#: First words of fragments and of clauses that stand for a subject.
_FRAGMENTS = (
    "Of By For As So What Who Whom Whose Whoever Whatever Whether When Where Why Which Such "
    "With Without In To From At Until While How"
)
VERBS, FRAGMENTS = frozenset(_VERBS.split()), frozenset(_FRAGMENTS.split())
EXCEPTION = re.compile(r"\b\w+Error\b")
#: Settings, whose descriptions are texts of docs/settings.md.
OF_SETTINGS = re.compile(r"/InstanceSettings(?:Body|OfRelease)?/properties/")


def descriptions(found: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield every description below an object with its path."""
    if isinstance(found, dict):
        if isinstance(found.get("description"), str):
            yield place, found["description"].strip()
        for name, each in found.items():
            yield from descriptions(each, f"{place}/{name}")
    elif isinstance(found, list):
        for each in found:
            yield from descriptions(each, place)


def test_summaries_start_with_a_verb_and_name_no_exception(document: dict[str, Any]) -> None:
    summaries = {
        each["summary"]
        for path in document["paths"].values()
        for each in path.values()
        if isinstance(each, dict)
    }
    assert sorted(each for each in summaries if re.split(r"\W", each)[0] not in VERBS) == []
    assert sorted(each for each in summaries if EXCEPTION.search(each) or ";" in each) == []
    assert sorted(each for each in summaries if each.endswith(".") or len(each) > 100) == []


def test_descriptions_are_sentences_or_noun_phrases(document: dict[str, Any]) -> None:
    found = list(descriptions(document))
    assert len(found) > 1_000
    assert [each for each in found if EXCEPTION.search(each[1])] == []
    assert [each for each in found if not each[1].endswith(".")] == []
    assert [each for each in found if each[1][0].islower()] == []
    fragments = [
        each
        for each in found
        if re.split(r"\W", each[1])[0] in FRAGMENTS and not OF_SETTINGS.search(each[0])
    ]
    assert fragments == []


def properties(schema: Any, schemas: dict[str, Any], place: str = "", depth: int = 8) -> set[str]:
    """Return the dotted names of the fields of a schema, with `[]` for the items of a list."""
    if depth == 0 or not isinstance(schema, dict):
        return set()
    schema = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
    found: set[str] = set()
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found |= properties(each, schemas, place, depth - 1)
    if "items" in schema:
        found |= properties(schema["items"], schemas, place and f"{place}[]", depth - 1)
    for name, each in schema.get("properties", {}).items():
        here = f"{place}.{name}".removeprefix(".")
        found |= {here} | properties(each, schemas, here, depth - 1)
    return found


@pytest.mark.spec("M2")
def test_a_field_is_removed_from_all_responses_at_the_same_release(
    document: dict[str, Any],
) -> None:
    schemas = document["components"]["schemas"]
    gone = [each for each in SCHEDULE if each.hosted and each.kind is ReleaseChangeKind.FIELD_GONE]
    last = {
        name.rpartition(".")[2]
        for each in gone
        for call in each.call_patterns
        for name in call.fields
    }
    missing = []
    for path, methods in document["paths"].items():
        if not path.startswith("/api/v4/"):
            continue
        for method, operation in methods.items():
            concerns = find_call_matches(method.upper(), re.sub(r"\{[^}]*\}", ":name", path))
            known = {name for each in concerns for name in each.call.fields}
            shown: set[str] = set()
            for answer in operation["responses"].values():
                for content in answer.get("content", {}).values():
                    shown |= properties(content.get("schema"), schemas)
            missing += [
                (method, path, name) for name in shown - known if name.rpartition(".")[2] in last
            ]
    assert missing == []
