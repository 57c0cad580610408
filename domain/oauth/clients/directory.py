"""Lists and counts of all applications, for administrators."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, case, func, not_, or_, select
from sqlalchemy.orm import Session

from domain.database.paging import Page, Slice, fetch_page
from domain.oauth.clients.applications import TRUSTED
from domain.oauth.clients.types import ApplicationPage
from domain.oauth.clients.views import list_some
from models import Application, User
from models.folding import fold, searchable

#: More words than these narrow nothing down any more.
_MOST_WORDS = 10


@dataclass(frozen=True, kw_only=True)
class ApplicationFilter:
    """The filter of an application list."""

    #: Those of the instance itself, or else those of its users.
    is_instance_wide: bool = True
    #: Words, each of which the name, the ID or a name of the owner must contain.
    search: str = ""


@dataclass(frozen=True, kw_only=True)
class ApplicationCounts:
    """The number of applications of each kind."""

    instance_wide: int
    of_users: int
    trusted: int


def page_of_applications(
    wanted: ApplicationFilter, part: Slice, *, session: Session, now: datetime
) -> Page[ApplicationPage]:
    """Return a page of applications, newest first."""
    statement = (
        select(Application.id)
        .join(User, User.id == Application.owner_id)
        .where(_is_of(wanted), *_words(wanted.search))
    )
    found = fetch_page(statement, Application.id, part, session=session, view=lambda row: row)
    ids = [row.id for row in found.items]
    return Page(
        items=list_some(ids, session=session, now=now),
        next_before=found.next_before,
        previous_after=found.previous_after,
    )


def _is_of(wanted: ApplicationFilter) -> ColumnElement[bool]:
    mark = Application.is_instance_wide
    return mark.is_(True) if wanted.is_instance_wide else not_(mark)


def _words(search: str) -> list[ColumnElement[bool]]:
    columns = (
        searchable(Application.name, Application.name_key),
        Application.uid,
        searchable(User.username, User.username_key),
        searchable(User.name, User.name_key),
    )
    return [
        or_(*(column.contains(word, autoescape=True) for column in columns))
        for word in fold(search.replace("\x00", " ")).split()[:_MOST_WORDS]
    ]


def count_applications(*, session: Session) -> ApplicationCounts:
    """Count applications of each kind."""
    conditions = {
        "instance_wide": Application.is_instance_wide,
        "of_users": not_(Application.is_instance_wide),
        "trusted": TRUSTED,
    }
    counts = (
        func.count(case((condition, Application.id))).label(name)
        for name, condition in conditions.items()
    )
    return ApplicationCounts(**session.execute(select(*counts)).mappings().one())
