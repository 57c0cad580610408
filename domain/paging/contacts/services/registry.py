"""Lists and finds the messaging services that contacts can use."""

import tomllib
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from domain.core.errors import NotFoundError
from domain.paging.contacts.services.base import MessagingService, ServiceField, ServiceKind
from domain.paging.notifications.contact_types.apprise import APPRISE
from domain.paging.notifications.contact_types.base import ContactType
from domain.paging.notifications.contact_types.registry import CONTACT_TYPES

_DECLARATIONS = Path(__file__).with_name("services.toml")


def _load_services() -> Iterator[MessagingService]:
    """Yield the services that are declared in `services.toml`."""
    declared = tomllib.loads(_DECLARATIONS.read_text(encoding="utf-8"))
    for each in declared["services"]:
        fields = tuple(
            ServiceField(**{**declared["presets"].get(given.pop("preset", ""), {}), **given})
            for given in each["fields"]
        )
        yield MessagingService(**{**each, "kind": ServiceKind(each["kind"]), "fields": fields})


def _build_plain_service(contact_type: ContactType) -> MessagingService:
    """Return a service for a contact type, with the address as its only field."""
    is_apprise = contact_type is APPRISE
    address = ServiceField(
        name="address",
        label="Apprise URL" if is_apprise else contact_type.address_label,
        noun=contact_type.address_words,
        example=contact_type.example,
        pattern=contact_type.address_pattern,
        is_secret=is_apprise,
    )
    return MessagingService(
        slug=contact_type.name,
        name="Other (Apprise URL)" if is_apprise else contact_type.label,
        initials="…" if is_apprise else contact_type.label[0],
        kind=ServiceKind.OTHER,
        needs=contact_type.help,
        link=("https://appriseit.com/services/", "Find a service") if is_apprise else None,
        type=contact_type,
        url="{address}",
        fields=(address,),
    )


_SERVICES = tuple(_load_services())
_PLAIN_SERVICES = {each.name: _build_plain_service(each) for each in CONTACT_TYPES}
#: Services by their names in URLs. Services whose type has no example are omitted, because users do
#: not enter the addresses.
SERVICES: Mapping[str, MessagingService] = {
    each.slug: each for each in (*_SERVICES, *_PLAIN_SERVICES.values()) if each.type.example
}


def get_service(slug: str) -> MessagingService:
    """Return a service by its name in URLs.

    Raise NotFoundError if there is no such service.
    """
    if slug not in SERVICES:
        raise NotFoundError("Service not found.")
    return SERVICES[slug]


def search_services(text: str) -> list[tuple[ServiceKind, list[MessagingService]]]:
    """Return the services whose names or kinds contain all words of a search text, by kind."""
    words, kinds = text.casefold().split(), list(ServiceKind)
    found = [
        each
        for each in SERVICES.values()
        if all(word in f"{each.name} {each.kind.label}".casefold() for word in words)
    ]
    found.sort(key=lambda each: kinds.index(each.kind))
    return [(kind, list(some)) for kind, some in groupby(found, attrgetter("kind"))]


def find_service(type_name: str, shown: str) -> MessagingService:
    """Return the service of a contact, given its type and the visible part of its address."""
    scheme = shown.partition(":")[0]
    of_type = (each for each in _SERVICES if each.type.name == type_name)
    found = next((each for each in of_type if scheme in each.schemes), None)
    return found or _PLAIN_SERVICES[type_name]


def parse_address(
    type_name: str, shown: str, address: str
) -> tuple[MessagingService, Mapping[str, str]]:
    """Return the service of an address, and the values of its fields."""
    service = find_service(type_name, shown)
    values = service.parse_url(address)
    if values is not None:
        return service, values
    return _PLAIN_SERVICES[type_name], {"address": address}
