"""The contact types of this release, with functions that find them by name or address."""

from domain.core.errors import InvalidError
from domain.paging.notifications.contact_types.apprise import APPRISE
from domain.paging.notifications.contact_types.base import ContactType
from domain.paging.notifications.contact_types.device import DEVICE
from domain.paging.notifications.contact_types.mail import EMAIL

#: Types in the order in which pages list them.
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
