"""Steps of the pages of contacts and of channels."""

from flask import flash

from domain.errors import DomainError
from domain.notifications.contacts import Owner
from forms.contact import ContactForm
from web.notifications import contacts as shared
from web.notifications.contacts import SentMessage


def add(form: ContactForm, owner: Owner, *, is_confirmed: bool) -> bool:
    """Create what a form describes; return False with the error in the form."""
    try:
        address = shared.checked_address(form.type.data, form.address.data or "")
        shared.create(owner, address, form.label.data or "", is_confirmed=is_confirmed)
    except DomainError as error:
        form.object_to(getattr(error, "field", ""), str(error))
        return False
    return True


def say_result(result: SentMessage) -> None:
    """Say on the next page what came of a test message."""
    if result.is_sent:
        flash("Test message sent. Check that it has arrived.")
    elif result.problem is not None:
        flash(f"The test message was not sent: {result.problem}.", "error")
    else:
        flash(
            "The test message is queued. Reload this page in a moment to see the result.",
            "warning",
        )
