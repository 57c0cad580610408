"""Helpers for the contact and channel pages."""

from flask import flash

from domain.paging.contacts.types import ContactTest
from domain.paging.notifications.contact_types.registry import get_default_contact_type
from forms.contacts import ContactForm
from web.services import get_settings


def build_empty_form() -> ContactForm:
    """Return an empty form with a type that this service can send to."""
    return ContactForm(
        formdata=None, data={"type": get_default_contact_type(get_settings().mail_url).name}
    )


def flash_test_result(result: ContactTest) -> None:
    """Show the result of a test message on the next page."""
    if result.delivered:
        flash("Test message sent. Check that it has arrived.")
    elif result.delivered is None:
        flash(
            "The test message is queued. Reload this page in a moment to see the result.",
            "warning",
        )
    else:
        flash(f"The test message was not sent: {result.error}.", "error")
