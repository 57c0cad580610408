"""Lists with numbered pages and with keyset pagination."""

from collections.abc import Iterator
from typing import Literal

import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from domain.core.database.pagination import PageResult, fetch_list_page
from domain.core.errors import QueryError
from domain.core.types.pagination import PagedQuery
from domain.core.types.validation import validate_query


class Base(DeclarativeBase):
    """Tables of this test."""


class Thing(Base):
    """A row with a name that other rows have as well."""

    __tablename__ = "things"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class ThingQuery(PagedQuery):
    """Query of the list of a resource."""

    order_by: Literal["id", "name"] = "name"


@pytest.fixture
def session() -> Iterator[Session]:
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as opened:
        opened.add_all(Thing(id=number, name="ab"[number % 2]) for number in range(1, 8))
        opened.flush()
        yield opened
    engine.dispose()


def listed(session: Session, **given: str) -> PageResult[int]:
    query = validate_query(ThingQuery, {name: [value] for name, value in given.items()})
    found = fetch_list_page(
        select(Thing.id),
        {"id": Thing.id, "name": Thing.name},
        query.requested_range,
        session=session,
    )
    return PageResult(
        items=tuple(row.id for row in found.items),
        total=found.total,
        next_cursor=found.next_cursor,
    )


def test_numbered_pages_have_a_total_and_any_order(session: Session) -> None:
    first = listed(session, per_page="4", sort="asc")
    assert (first.items, first.total, first.next_cursor) == ((2, 4, 6, 1), 7, None)
    assert listed(session, per_page="4", sort="asc", page="2").items == (3, 5, 7)
    assert listed(session, order_by="id").items == (7, 6, 5, 4, 3, 2, 1)
    assert listed(session, page="9").items == ()


@pytest.mark.parametrize(("sort", "expected"), [("asc", range(1, 8)), ("desc", range(7, 0, -1))])
def test_keyset_pages_contain_every_item_once(session: Session, sort: str, expected: range) -> None:
    items: list[int] = []
    cursor = ""
    for _ in range(3):
        found = listed(session, pagination="keyset", per_page="3", sort=sort, cursor=cursor)
        assert found.total is None
        items += found.items
        cursor = found.next_cursor or ""
    assert items == list(expected)
    assert cursor == ""


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"pagination": "keyset", "page": "2"}, "pagination"),
        ({"pagination": "keyset", "order_by": "name"}, "order_by"),
        ({"cursor": "4"}, "cursor"),
        ({"pagination": "keyset", "cursor": "x"}, "cursor"),
        ({"sort": "up"}, "sort"),
        ({"order_by": "size"}, "order_by"),
    ],
)
def test_parameters_of_the_other_pagination_are_rejected(
    session: Session, given: dict[str, str], field: str
) -> None:
    with pytest.raises(QueryError) as refused:
        listed(session, **given)
    assert refused.value.field == field
