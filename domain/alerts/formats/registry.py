"""Registry of all integration types."""

from domain.alerts.formats.base import AlertFormat, IntegrationType, OnCallToolLink
from domain.alerts.formats.external_on_call_tool import EXTERNAL
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS

#: Formats in the order in which forms list them. The first format parses bodies that no format
#: recognizes.
FORMATS: tuple[AlertFormat, ...] = (HTTP, PROMETHEUS)
ON_CALL_TOOL_LINKS: tuple[OnCallToolLink, ...] = (EXTERNAL,)
INTEGRATION_TYPES: tuple[IntegrationType, ...] = (*FORMATS, *ON_CALL_TOOL_LINKS)
INTEGRATION_TYPE_NAMES = tuple(each.name for each in INTEGRATION_TYPES)
#: Format of the bodies that the service itself creates, for example for heartbeats.
OWN_FORMAT = HTTP

#: Formats by their stored names.
FORMATS_BY_NAME = {each.name: each for each in FORMATS}
_TYPES_BY_NAME = {each.name: each for each in INTEGRATION_TYPES}


def get_format(name: str) -> AlertFormat:
    """Return the alert format with the given name in the database.

    Raise KeyError if no format has this name.
    """
    return FORMATS_BY_NAME[name]


def get_integration_type(name: str) -> IntegrationType:
    """Return the integration type with the given name in the database.

    Raise KeyError if no type has this name.
    """
    return _TYPES_BY_NAME[name]
