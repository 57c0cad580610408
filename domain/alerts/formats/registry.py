"""All types of integrations."""

from domain.alerts.formats.base import Format, IntegrationType, Link
from domain.alerts.formats.external import EXTERNAL
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS

#: In the order of forms. The first reads what no other is known for.
FORMATS: tuple[Format, ...] = (HTTP, PROMETHEUS)
LINKS: tuple[Link, ...] = (EXTERNAL,)
INTEGRATION_TYPES: tuple[IntegrationType, ...] = (*FORMATS, *LINKS)
INTEGRATION_TYPE_NAMES = tuple(each.name for each in INTEGRATION_TYPES)
#: The format of bodies that the service itself writes, such as those of heartbeats.
OWN_FORMAT = HTTP

#: By the stored name.
FORMATS_BY_NAME = {each.name: each for each in FORMATS}
_TYPES = {each.name: each for each in INTEGRATION_TYPES}


def format_named(name: str) -> Format:
    """Return the format with a stored name."""
    return FORMATS_BY_NAME[name]


def type_named(name: str) -> IntegrationType:
    """Return the type with a stored name."""
    return _TYPES[name]
