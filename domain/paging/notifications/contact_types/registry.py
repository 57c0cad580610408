"""The contact types of this release, with functions that find them by name or address."""

from domain.core.errors import InvalidError
from domain.paging.notifications.contact_types.apprise import APPRISE
from domain.paging.notifications.contact_types.base import ContactType
from domain.paging.notifications.contact_types.device import DEVICE
from domain.paging.notifications.contact_types.mail import EMAIL

#: Types in the order in which forms list them. The first usable type is the default choice.
CONTACT_TYPES: tuple[ContactType, ...] = (EMAIL, APPRISE, DEVICE)
_BY_NAME = {each.name: each for each in CONTACT_TYPES}
#: Types whose addresses users enter.
ENTERED_CONTACT_TYPES = tuple(each for each in CONTACT_TYPES if each.is_entered)
CONTACT_TYPE_NAMES = tuple(_BY_NAME)
#: Noun phrase for all kinds of addresses that follows the word “Enter”.
ADDRESS_WORDS = " or ".join(each.address_words for each in ENTERED_CONTACT_TYPES)


def get_contact_type(name: str) -> ContactType:
    """Return the contact type with the given name.

    Raise InvalidError if there is no such type.
    """
    try:
        return _BY_NAME[name]
    except KeyError as error:
        message = f"The type must be {' or '.join(CONTACT_TYPE_NAMES)}."
        raise InvalidError(message, field="type") from error


def guess_contact_type(contact_type: ContactType, text: str) -> ContactType:
    """Return the chosen contact type, or another type if only that one accepts the address."""
    others = (each for each in ENTERED_CONTACT_TYPES if each.accepts_text(text))
    return contact_type if contact_type.accepts_text(text) else next(others, contact_type)


def get_default_contact_type(mail_url: str) -> ContactType:
    """Return the first contact type to which this instance can send messages."""
    return next(each for each in CONTACT_TYPES if mail_url or not each.uses_mail_server)
