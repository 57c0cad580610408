"""Steps of the pages of contacts and of channels."""

from flask import flash

from domain.paging.contacts.types import ContactTest
from domain.paging.notifications.contact_types.registry import proposed_type
from forms.contacts import ContactForm
from web.services import settings


def empty_form() -> ContactForm:
    """Return the form with the type that this service can send to."""
    return ContactForm(formdata=None, data={"type": proposed_type(settings().mail_url).name})


def waits_for_mail(form: ContactForm) -> bool:
    """Return whether messages to a posted contact wait until the service can send e-mail."""
    return form.chosen_type.uses_mail_server and not settings().mail_url


def say_result(result: ContactTest) -> None:
    """Say on the next page what came of a test message."""
    if result.delivered:
        flash("Test message sent. Check that it has arrived.")
    elif result.delivered is None:
        flash(
            "The test message is queued. Reload this page in a moment to see the result.",
            "warning",
        )
    else:
        flash(f"The test message was not sent: {result.error}.", "error")
