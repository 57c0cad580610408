"""Email notices about access tokens that expire soon, to their users or maintainers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.accounts.users import ACTIVE, BOT
from domain.core.time_zones import format_local_time
from domain.core.types.base import get_column_values
from domain.delivery.mail.outbox import MessageSettings, NewEmail, queue_emails
from domain.oauth.personal_tokens.token_lists import build_live_personal_token_condition
from domain.projects.bots import Maintainer, find_maintainers
from models import Bot, PersonalAccessToken, User

_ONE_DAY = timedelta(days=1)
#: Number of emails that are added to the outbox together.
_BATCH_SIZE = 200


class ExpiryNotice(StrEnum):
    """A notice about the expiry of a token. Each token has up to two notices."""

    EARLY = "early"
    LAST_DAY = "last day"


@dataclass(frozen=True, kw_only=True)
class ExpiryNoticeSettings(MessageSettings):
    """Values for the text of the notices, and the time from the first notice to the expiry."""

    ahead: timedelta


@dataclass(frozen=True, kw_only=True)
class _ExpiringToken:
    """A token that expires soon, with its project or group, if any."""

    token: PersonalAccessToken
    ends_at: datetime
    user: User
    group_id: int | None
    project_id: int | None


@dataclass(kw_only=True)
class _MaintainerCache:
    """A cache of the maintainers of projects and groups."""

    session: Session
    today: date
    _known: dict[tuple[int | None, int | None], tuple[str, tuple[Maintainer, ...]]] = field(
        default_factory=dict
    )

    def find_maintainers(self, ending: _ExpiringToken) -> tuple[str, tuple[Maintainer, ...]]:
        """Return the path of the project or group and its maintainers."""
        namespace = (ending.group_id, ending.project_id)
        if namespace not in self._known:
            self._known[namespace] = find_maintainers(
                *namespace, session=self.session, today=self.today
            )
        return self._known[namespace]


def queue_token_expiry_notices(
    notice_settings: ExpiryNoticeSettings, *, session: Session, now: datetime
) -> int:
    """Queue the notices that are due and not queued yet, and return the number of notices."""
    maintainers, written = _MaintainerCache(session=session, today=now.date()), 0
    waiting: list[NewEmail] = []
    for ending in _iterate_expiring_tokens(notice_settings.ahead, session=session, now=now):
        notice = _find_due_notice(ending, notice_settings.ahead, now)
        waiting += _build_emails(ending, notice, maintainers, notice_settings) if notice else ()
        if len(waiting) >= _BATCH_SIZE:
            written += queue_emails(
                waiting, session=session, keyring=notice_settings.keyring, now=now
            )
            waiting = []
    return written + queue_emails(
        waiting, session=session, keyring=notice_settings.keyring, now=now
    )


def _iterate_expiring_tokens(
    ahead: timedelta, *, session: Session, now: datetime
) -> Iterator[_ExpiringToken]:
    rows = session.execute(
        select(PersonalAccessToken, User, Bot.group_id, Bot.project_id)
        .join(User, User.id == PersonalAccessToken.user_id)
        .outerjoin(Bot, Bot.user_id == User.id)
        .where(
            build_live_personal_token_condition(now),
            PersonalAccessToken.expires_at <= now + max(ahead, _ONE_DAY),
        )
        .where(User.state == ACTIVE)
        .order_by(PersonalAccessToken.id)
    ).all()
    for token, user, group_id, project_id in rows:
        if token.expires_at is None:
            continue
        yield _ExpiringToken(
            token=token,
            ends_at=token.expires_at,
            user=user,
            group_id=group_id,
            project_id=project_id,
        )


def _find_due_notice(
    ending: _ExpiringToken, ahead: timedelta, now: datetime
) -> ExpiryNotice | None:
    """Return the notice that is due, if any. Tokens with short lifetimes have no notices."""
    lifetime, left = ending.ends_at - ending.token.created_at, ending.ends_at - now
    if left <= _ONE_DAY:
        return ExpiryNotice.LAST_DAY if lifetime > 2 * _ONE_DAY else None
    return ExpiryNotice.EARLY if left <= ahead and lifetime > ahead + _ONE_DAY else None


def _build_emails(
    ending: _ExpiringToken,
    notice: ExpiryNotice,
    maintainers: _MaintainerCache,
    notice_settings: ExpiryNoticeSettings,
) -> Iterator[NewEmail]:
    if ending.user.kind != BOT:
        owner = Maintainer(**get_column_values(ending.user, Maintainer))
        yield _build_email(
            ending,
            notice,
            owner,
            _NoticeWording.build_wording_for_person(notice_settings),
            notice_settings,
        )
        return
    path, people = maintainers.find_maintainers(ending)
    words = _NoticeWording.build_wording_for_namespace(
        path, notice_settings, is_group=ending.group_id is not None
    )
    for maintainer in people:
        yield _build_email(ending, notice, maintainer, words, notice_settings)


@dataclass(frozen=True, kw_only=True)
class _NoticeWording:
    """The wording of notices about personal tokens, or tokens of a project or group."""

    #: Text before the name of the token; `of_whom` follows the name.
    what: str
    of_whom: str
    page: str
    reason: str

    @classmethod
    def build_wording_for_person(cls, notice_settings: ExpiryNoticeSettings) -> "_NoticeWording":
        return cls(
            what="Your personal access token",
            of_whom="",
            page=f"{notice_settings.base_url}/-/user_settings/access_tokens",
            reason="You receive this message because the token is yours.",
        )

    @classmethod
    def build_wording_for_namespace(
        cls, path: str, notice_settings: ExpiryNoticeSettings, *, is_group: bool
    ) -> "_NoticeWording":
        page = f"groups/{path}/-/access_tokens" if is_group else f"{path}/-/settings/access_tokens"
        return cls(
            what="The access token",
            of_whom=f" of {path}",
            page=f"{notice_settings.base_url}/{page}",
            reason=f"You receive this message because you are a maintainer of {path}.",
        )


def _build_email(
    ending: _ExpiringToken,
    notice: ExpiryNotice,
    maintainer: Maintainer,
    wording: _NoticeWording,
    notice_settings: ExpiryNoticeSettings,
) -> NewEmail:
    token, ends = ending.token, format_local_time(ending.ends_at, maintainer.time_zone)
    day, _, clock = ends.partition(" ")
    when = f"on {day}" if notice is ExpiryNotice.EARLY else "within a day"
    used = token.last_used_at
    last = format_local_time(used, maintainer.time_zone).partition(" ")[0] if used else ""
    use = f"It was last used on {last}." if used else "It has never been used."
    return NewEmail(
        key=f"token {token.id} ends, {notice}, to {maintainer.id}",
        recipient=maintainer.email,
        subject=f"The access token “{token.name}” expires {when}",
        text=(
            f"Hello {maintainer.name},\n\n"
            f"{wording.what} “{token.name}”{wording.of_whom} expires on {day}, at {clock}.\n"
            f"Everything that uses it will lose access. {use}\n\n"
            "Rotate it before then to get a new token with the same lifetime:\n"
            f"{wording.page}\n\n"
            f"-- \n{notice_settings.instance_name}, {notice_settings.base_url}\n{wording.reason}\n"
        ),
    )
