"""Settings and hooks of the instance that paging depends on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from sqlalchemy.orm import Session

from domain.alerts.formats.base import ParserSettings
from domain.core.keyring import Keyring
from domain.paging.notifications.page_subjects import SubjectKind


@dataclass(frozen=True, kw_only=True)
class PageReason:
    """The reason why a recipient is paged, and the next step of the escalation."""

    policy: str
    #: Number of the step, starting at 1, and the number of steps in the policy. The step is 0 for
    #: pages that no step caused.
    step: int
    steps: int
    #: Number of the round, starting at 1.
    round: int
    #: Name of the user or rule that requested the page. None if a policy caused the page.
    asked_by: str | None = None
    #: Schedules of the step in which the user is on call. Empty if the step names the user.
    schedules: tuple[str, ...] = ()
    #: Time of the first page to any recipient.
    first_paged_at: datetime
    #: Recipients of the next step in words, and the time of the step. None if no step follows.
    next_whom: str | None = None
    next_at: datetime | None = None


class PageReasonFinder(Protocol):
    """Function that finds the reasons for pages."""

    def __call__(
        self,
        ids: Collection[int],
        /,
        *,
        user_id: int | None,
        channel_id: int | None,
        session: Session,
    ) -> Mapping[int, PageReason]:
        """Return the reasons for pages by alert or incident ID.

        Alerts and incidents without a reason are left out.
        """


class PageHold(NamedTuple):
    """A hold on all pages about an alert, with its reason and the time of the next check."""

    #: Reason as part of a sentence, such as `silence “deploy”`.
    words: str
    #: Time of the next check.
    look_again_at: datetime


class HoldFinder(Protocol):
    """Function that finds the holds on pages about alerts."""

    def __call__(
        self,
        projects: Mapping[int, int],
        /,
        *,
        moment: datetime,
        session: Session,
        parser_settings: ParserSettings,
    ) -> Mapping[int, PageHold]:
        """Return the holds on pages about alerts, by alert ID.

        `projects` maps alert IDs to project IDs.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class PagingSettings:
    """Settings that pages and their content depend on."""

    #: Base URL, without a trailing slash.
    base_url: str
    instance_name: str
    #: True if email can be sent (MAIL_URL is set).
    sends_mail: bool
    #: Keys for signed links in messages. The first key signs links, and all keys verify links.
    link_keys: tuple[str, ...] = field(repr=False)
    #: Keys that encrypt the messages to maintainers.
    keyring: Keyring = field(repr=False)
    #: Settings for parsing alert payloads.
    reading: ParserSettings
    #: Functions that find the reasons for pages.
    reason_finders: Mapping[SubjectKind, PageReasonFinder]
    #: Function that finds holds before each attempt to send a page.
    find_holds: HoldFinder
