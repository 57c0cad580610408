"""Steps of the pages of contacts and of channels."""

from flask import flash

from domain.errors import DomainError
from domain.notifications.contacts import ContactType, Owner
from forms.contact import ContactForm
from web.notifications import contacts as shared
from web.notifications.contacts import SentMessage
from web.services import settings


def add(form: ContactForm, owner: Owner, *, is_confirmed: bool) -> bool:
    """Create what a form describes; return False with the error in the form."""
    try:
        address = shared.checked_address(_type(form), form.address.data or "")
        shared.create(owner, address, form.label.data or "", is_confirmed=is_confirmed)
    except DomainError as error:
        form.object_to(getattr(error, "field", ""), str(error))
        return False
    return True


def empty_form() -> ContactForm:
    """Return the form with the type that this service can send to."""
    chosen = ContactType.EMAIL if settings().mail_url else ContactType.APPRISE
    return ContactForm(formdata=None, data={"type": chosen.value})


def _type(form: ContactForm) -> str:
    """Return the type; a URL is no e-mail address, whatever is selected above it."""
    is_url = "://" in (form.address.data or "")
    return ContactType.APPRISE.value if is_url else str(form.type.data)


def waits_for_mail(form: ContactForm) -> bool:
    """Return whether messages to a posted contact wait until the service can send e-mail."""
    return _type(form) == ContactType.EMAIL and not settings().mail_url


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
