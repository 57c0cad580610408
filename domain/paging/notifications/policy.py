"""What the settings of the instance say about pages."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from sqlalchemy.orm import Session

from domain.alerts.formats.base import Reading
from domain.core.keyring import Keyring
from domain.paging.notifications.page_targets import Subject


@dataclass(frozen=True, kw_only=True)
class PageReason:
    """Why somebody is paged, and what follows."""

    policy: str
    #: The step that paged, from 1, and how many the policy has; 0 for who is paged beside them.
    step: int
    steps: int
    #: From 1.
    round: int
    #: Who or what asked for the person, in words; None if a policy pages.
    asked_by: str | None = None
    #: The schedules of the step in which the person is on call; none if the step names the person.
    schedules: tuple[str, ...] = ()
    #: When the first person or channel was paged for it.
    first_paged_at: datetime
    #: Whom the next step pages, in words, and when; None if nobody is paged after this.
    next_whom: str | None = None
    next_at: datetime | None = None


class Explain(Protocol):
    """Finds the reasons of pages."""

    def __call__(
        self,
        ids: Collection[int],
        /,
        *,
        user_id: int | None,
        channel_id: int | None,
        session: Session,
    ) -> Mapping[int, PageReason]:
        """Return the reasons by alert or incident; those that nothing pages for are left out."""


class PageHold(NamedTuple):
    """What holds back every page of an alert at a moment."""

    #: A part of a sentence, such as `silence “deploy”`.
    words: str
    #: When to check again.
    look_again_at: datetime


class FindHolds(Protocol):
    """Finds what holds back the pages of alerts."""

    def __call__(
        self, projects: Mapping[int, int], /, *, at: datetime, session: Session, reading: Reading
    ) -> Mapping[int, PageHold]:
        """Return holds by alert; `projects` has the projects of all alerts in question by alert."""
        ...


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
    #: Encrypts the messages to maintainers.
    keyring: Keyring = field(repr=False)
    #: How the reports of alerts are read.
    reading: Reading
    #: Tell why somebody is paged.
    explain: Mapping[Subject, Explain]
    #: Checks before each attempt whether something mutes the alerts of a page.
    find_holds: FindHolds
