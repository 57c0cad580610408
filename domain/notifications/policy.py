"""What the settings of the instance say about pages."""

from dataclasses import dataclass, field

from domain.alerts.formats.base import Reading
from domain.notifications.reasons import Explain


@dataclass(frozen=True, kw_only=True)
class PagingPolicy:
    """The settings that pages depend on, and what their texts are made with."""

    #: Without a trailing slash.
    base_url: str
    instance_name: str
    #: Whether e-mail can be sent (MAIL_URL is set).
    sends_mail: bool
    #: Sign the links of messages; the first signs, all verify.
    link_keys: tuple[str, ...] = field(repr=False)
    #: How the reports of alerts are read.
    reading: Reading
    #: Tells why somebody is paged.
    explain: Explain
