"""Checks that `test_additions.py` runs with a made-up contact type."""

from collections.abc import Iterator

import pytest
from flask import Flask
from flask.testing import FlaskClient

from domain.paging.notifications.contact_types.base import ContactAddress, SendProblem
from domain.paging.notifications.contact_types.registry import CONTACT_TYPE_NAMES
from domain.paging.notifications.contacts import Contact, ContactOwner
from domain.paging.notifications.message_queue_state import find_contact_type_states
from tests.support.notifications.paging import Pages, Person
from tests.support.oauth.registrations import token_of
from tests.support.service.commands import operate
from tests.web.registries.made_up_contact_type import PIGEON
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("sqlite")
_PASSWORD = "the very first of them"


@pytest.fixture
def visitor(app: Flask) -> FlaskClient:
    """Return the browser of alice, who is an administrator."""
    app.config.update(WTF_CSRF_ENABLED=False, WTF_CSRF_METHODS=frozenset())
    person = ("users", "create", "alice", "--email", "alice@people.example", "--admin")
    done = app.test_cli_runner().invoke(args=(*person, "--password-stdin"), input=f"{_PASSWORD}\n")
    assert done.exit_code == 0, done.output
    browser = app.test_client()
    form = {"login": "alice", "password": _PASSWORD}
    assert browser.post("/users/sign_in", data=form).status_code == 302
    return browser


def test_pages_offer_the_contact_type(visitor: FlaskClient) -> None:
    page = visitor.get("/-/user_settings/contacts")
    assert "Carrier pigeon" in page.text
    chosen = visitor.get("/-/user_settings/contacts?service=pigeon")
    assert "A pigeon that carries a few words." in chosen.text
    form = {"service": "pigeon", "address": "loft 7", "label": "Roof"}
    answer = visitor.post("/-/user_settings/contacts", data=form, follow_redirects=True)
    assert "The code is being sent." in answer.text
    assert "<bdi>loft</bdi>" in answer.text
    assert "Carrier pigeons" in visitor.get("/admin/queues").text


def test_the_api_accepts_and_documents_the_contact_type(visitor: FlaskClient) -> None:
    body = {"type": "pigeon", "address": "loft 7"}
    at, who = "/api/v4/user/contacts", token_of(visitor, "alice")
    made = visitor.post(at, json=body, headers=who)
    assert made.status_code == 201, made.text
    assert made.json is not None
    assert made.json["type"] == "pigeon"
    refused = visitor.post(at, json={**body, "type": "fax"}, headers=who)
    assert "pigeon" in refused.text
    description = visitor.get("/api/openapi.json").json
    assert description is not None
    types = description["components"]["schemas"]["Contact"]["properties"]["type"]["enum"]
    assert types == [*CONTACT_TYPE_NAMES]
    assert "pigeon" in types


def test_the_command_line_accepts_the_contact_type(app: Flask) -> None:
    operate(app, "users", "create", "bob", "--email", "bob@people.example")
    made = operate(app, "contacts", "create", "bob", "--type", "pigeon", "--address", "loft 7")
    assert (made["type"], made["address"]) == ("pigeon", "loft")


@pytest.fixture
def pages(settings: Settings) -> Iterator[Pages]:
    made = Pages(settings)
    yield made
    made.close()


def pigeon_of(pages: Pages, person: Person) -> Contact:
    address = ContactAddress(type=PIGEON, clear="loft 7", shown="loft", lane="pigeon")
    return pages.contact(ContactOwner(user_id=person.id), address, label="Roof")


def test_pages_are_sent_by_the_contact_type(pages: Pages) -> None:
    alice = pages.person("alice", has_contact=False)
    pigeon_of(pages, alice)
    alert = pages.alert("Disk full")
    pages.page([alert], alice)
    PIGEON.problem = SendProblem("a hawk was seen")
    pages.run_for(3)
    assert any("“Roof” failed (a hawk was seen)" in text for _, _, text in pages.activity(alert))
    PIGEON.problem = None
    pages.run_for(40)
    address, subject = PIGEON.sent[-1]
    assert address == "loft 7"
    assert "Disk full" in subject
    with pages.session() as session:
        counted = {
            each.type.name: each.failed_attempts
            for each in find_contact_type_states(session=session, now=pages.now)
        }
    assert counted["pigeon"] == 1
