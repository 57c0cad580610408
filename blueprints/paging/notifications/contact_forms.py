"""Helpers for the contact and channel pages."""

from collections.abc import Sequence
from typing import Any

from flask import flash
from flask.typing import ResponseReturnValue

from domain.core.randomness import generate_random_letters
from domain.paging.contacts.actions import find_contact_fields
from domain.paging.contacts.services.registry import find_service, get_service, search_services
from domain.paging.contacts.types import ContactTest
from domain.paging.notifications.contacts import Contact
from forms.contacts import ContactForm, build_contact_form
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.pages.list_query import get_list_query
from web.pages.qr_codes import build_qr_code
from web.services import get_settings

_TOPIC_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
_TOPIC_LENGTH = 24


def read_gallery_query() -> tuple[str, str]:
    """Return the service and the search text from the query. Both can be empty."""
    given = get_list_query("service", "search")
    return given.get("service", ""), given.get("search", "").strip()


def build_new_contact_form(service: str) -> ContactForm:
    """Return the form for a new contact of a service.

    A topic field starts with a random value. Raise NotFoundError if there is no such service.
    """
    topic = f"gatebell-{generate_random_letters(_TOPIC_LETTERS, _TOPIC_LENGTH)}"
    return build_contact_form(get_service(service), {}, data={"topic": topic})


def build_contact_change_form(contact: Contact) -> ContactForm:
    """Return the form that changes a contact, without showing its stored secrets.

    Raise NotFoundError if contacts of this service have no form.
    """
    service, values = find_contact_fields(get_unit_of_work(), contact)
    return build_contact_form(get_service(service.slug), values, data={"label": contact.label})


def render_service_page(form: ContactForm, **context: Any) -> ResponseReturnValue:
    """Render the form for a contact of a service, with status 422 if the form has errors."""
    url = None
    if "topic" in form and not (form["topic"].errors or form["server"].errors):
        # Phones subscribe to the topic at this URL.
        url = f"{(form['server'].data or '').rstrip('/')}/{form['topic'].data}"
    return render_form_page(
        "notifications/service.html",
        form,
        service=form.service,
        topic_url=url,
        qr_code=build_qr_code(url) if url else None,
        sends_mail=bool(get_settings().mail_url),
        **{"holder": None, "frame": "account/frame.html", "create": None, **context},
    )


def build_gallery_context(search: str, contacts: Sequence[Contact]) -> dict[str, Any]:
    """Return the template variables for the gallery of services and for the list of contacts."""
    return {
        "search": search,
        "groups": search_services(search),
        "services": {each.id: find_service(each.type, each.address) for each in contacts},
        "sends_mail": bool(get_settings().mail_url),
    }


def flash_test_result(result: ContactTest) -> None:
    """Show the result of a test message on the next page."""
    if result.delivered:
        flash("Test message sent. Check that it has arrived.")
    elif result.delivered is None:
        message = "The test message is queued. Reload this page in a moment to see the result."
        flash(message, "warning")
    else:
        flash(f"The test message was not sent: {result.error}.", "error")
