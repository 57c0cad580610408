"""Registry of all integration types."""

from domain.alerts.formats.base import Format, IntegrationType, Link
from domain.alerts.formats.external import EXTERNAL
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS

#: Formats in the order of forms. The first one reads bodies that no format recognizes.
FORMATS: tuple[Format, ...] = (HTTP, PROMETHEUS)
LINKS: tuple[Link, ...] = (EXTERNAL,)
INTEGRATION_TYPES: tuple[IntegrationType, ...] = (*FORMATS, *LINKS)
INTEGRATION_TYPE_NAMES = tuple(each.name for each in INTEGRATION_TYPES)
#: Format of bodies that the service writes itself, for example for heartbeats.
OWN_FORMAT = HTTP

#: Formats by their stored names.
FORMATS_BY_NAME = {each.name: each for each in FORMATS}
_TYPES = {each.name: each for each in INTEGRATION_TYPES}


def format_named(name: str) -> Format:
    """Return the format with a stored name."""
    return FORMATS_BY_NAME[name]


def type_named(name: str) -> IntegrationType:
    """Return the integration type with a stored name."""
    return _TYPES[name]
