"""The search index of alerts: separation of words, and deletion with the alert."""

from string import punctuation

import pytest
from sqlalchemy import delete, select, text

from domain.alerts.listing.search import find_matches, parse_search_words
from models import Alert, Project
from tests.support.accounts.people import database_of
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell


def found_by(gatebell: LiveGatebell, endpoint: Endpoint, typed: str) -> list[int]:
    """Return the numbers of a project's alerts that a search finds."""
    with database_of(gatebell) as session:
        its_id = select(Project.id).where(Project.path == endpoint.project)
        project_id = session.scalars(its_id).one()
        matches = find_matches(parse_search_words(typed), project_id=project_id, session=session)
        statement = select(Alert.iid).where(matches.condition, Alert.project_id == project_id)
        return list(session.scalars(statement.order_by(Alert.iid)))


@pytest.mark.long
def test_any_punctuation_separates_words(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for sign in punctuation:
        endpoint.accepted(title=f"before{sign}after", description=f"x{ord(sign)}y{sign}2")
    everything = list(range(1, len(punctuation) + 1))
    assert found_by(gatebell, endpoint, "after") == everything
    assert found_by(gatebell, endpoint, "before") == everything
    for iid, sign in enumerate(punctuation, 1):
        assert found_by(gatebell, endpoint, f"x{ord(sign)}y") == [iid]
        assert found_by(gatebell, endpoint, f"before{sign}after x{ord(sign)}y{sign}2") == [iid]


def test_the_words_of_a_deleted_alert_are_deleted(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for title in ("first one", "second one"):
        endpoint.accepted(title=title)
    stored = text("SELECT count(*) FROM alert_search")
    with database_of(gatebell) as session:
        before = session.scalar(stored)
        its_id = select(Project.id).where(Project.path == endpoint.project).scalar_subquery()
        gone = delete(Alert).where(Alert.project_id == its_id, Alert.iid == 1)
        session.execute(gone.execution_options(synchronize_session=False))
        assert before is not None
        assert session.scalar(stored) == before - 1
    assert found_by(gatebell, endpoint, "one") == [2]


@pytest.mark.long
def test_words_are_found_by_their_beginnings_in_every_field(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Disk 100% full")
    endpoint.accepted(
        title="a_b", service="checkout", monitoring_tool="Nagios", hosts=["web-7.example.org"],
        platform_environment_name="production",
    )  # fmt: skip
    endpoint.accepted(title="axb", description="the words of a description")
    for title in ("back\\slash", 'quo"te', "磁盘使用率", "e\u0301te\u0301"):
        endpoint.accepted(title=title)
    expected: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("disk", "DISK full", "dis 10"), (1,)),
        **dict.fromkeys(("checkout", "nagios", "web-7.example", "prod", "a_b"), (2,)),
        **dict.fromkeys(("a:*|b", "a & !b"), (2,)),
        "words of the description": (3,),
        "back\\slash": (4,),
        'te quo"': (5,),
        "磁盘": (6,),
        "e\u0301t": (7,),
        **dict.fromkeys(("isk", "full empty", "disk OR full", "title:disk"), ()),
        **dict.fromkeys(("%", "_", "\\", '"', "'", "*", ":*", "\N{EN DASH}", "\u0301"), ()),
        **dict.fromkeys(("' OR '1'='1", "{{7*7}} %s", 'NEAR("a" "b")', "%00", "\ufffd"), ()),
        **dict.fromkeys(("x" * 200, "x " * 99), ()),
    }
    found = {typed: tuple(found_by(gatebell, endpoint, typed)) for typed in expected}
    assert found == expected


SIGNS = ("🔥", "—", "→", "€", "…", "👩\u200d🚒")


@pytest.mark.long
def test_search_ignores_terms_without_letters_and_digits(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for number, sign in enumerate(SIGNS):
        endpoint.accepted(title=f"Disk{number} {sign} full")
        endpoint.accepted(title=f"Link{number}{sign}down")
    for number, sign in enumerate(SIGNS):
        disk, link = 2 * number + 1, 2 * number + 2
        assert found_by(gatebell, endpoint, f"disk{number} {sign} full") == [disk]
        assert found_by(gatebell, endpoint, f"{sign} {sign}disk{number}") == [disk]
        assert found_by(gatebell, endpoint, f"link{number}{sign}down") == [link]
        assert found_by(gatebell, endpoint, sign) == []


#: Pairs of the word in the title and the word that a user types.
ACCENTED = (
    ("Zürich", "zurich"),
    ("Bern", "BÉRN"),
    ("CAFÉ", "cafe\u0301"),
    ("The\u0301", "Thé"),
    ("Việt", "viet"),
    ("Øresund", "øresund"),
    ("страна", "стран"),
    ("край", "край"),
    ("서울", "서울"),
    ("Überlauf→Ölpumpe", "uber olp"),
)


def test_a_word_is_found_with_its_accents_and_without(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for written, _ in ACCENTED:
        endpoint.accepted(title=f"Fire in {written} again")
    for iid, (_, typed) in enumerate(ACCENTED, 1):
        assert found_by(gatebell, endpoint, typed) == [iid]
        assert found_by(gatebell, endpoint, f"again {typed} fire") == [iid]


def test_marks_of_non_latin_letters_are_not_ignored(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="край")
    assert found_by(gatebell, endpoint, "краи") == []
