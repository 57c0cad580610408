"""The words of an alert: what separates them, and that they go when it goes."""

from string import punctuation

import pytest
from sqlalchemy import delete, select, text

from domain.alerts.search import find_matches, words_of
from models import Alert, Project
from tests.support.live import LiveGatebell
from tests.support.people import database_of
from tests.support.senders import Endpoint, connect


def found_by(gatebell: LiveGatebell, endpoint: Endpoint, typed: str) -> list[int]:
    """Return the numbers of a project's alerts that a search finds."""
    with database_of(gatebell) as session:
        its_id = select(Project.id).where(Project.path == endpoint.project)
        project_id = session.scalars(its_id).one()
        matches = find_matches(words_of(typed), project_id=project_id, session=session)
        statement = select(Alert.iid).where(matches.condition, Alert.project_id == project_id)
        return list(session.scalars(statement.order_by(Alert.iid)))


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


def test_words_go_with_their_alert(gatebell: LiveGatebell) -> None:
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


@pytest.mark.parametrize("sign", ["🔥", "—", "→", "€", "…", "👩\u200d🚒"])
def test_what_has_no_letter_and_no_digit_is_not_looked_for(
    gatebell: LiveGatebell, sign: str
) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title=f"Disk {sign} full")
    endpoint.accepted(title=f"Link{sign}down")
    assert found_by(gatebell, endpoint, f"disk {sign} full") == [1]
    assert found_by(gatebell, endpoint, f"{sign} {sign}disk") == [1]
    assert found_by(gatebell, endpoint, f"link{sign}down") == [2]
    assert found_by(gatebell, endpoint, sign) == []


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        ("Zürich", "zurich"),
        ("Zurich", "ZÜRICH"),
        ("CAFÉ", "cafe\u0301"),
        ("cafe\u0301", "Café"),
        ("Việt", "viet"),
        ("Øresund", "øresund"),
        ("страна", "стран"),
        ("край", "край"),
        ("서울", "서울"),
        ("Überlauf→Ölpumpe", "uber olp"),
    ],
)
def test_a_word_is_found_with_its_accents_and_without(
    gatebell: LiveGatebell, written: str, typed: str
) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title=f"Fire in {written} again")
    endpoint.accepted(title="Fire elsewhere")
    assert found_by(gatebell, endpoint, typed) == [1]
    assert found_by(gatebell, endpoint, f"again {typed} fire") == [1]


def test_a_mark_of_another_script_makes_another_letter(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="край")
    assert found_by(gatebell, endpoint, "краи") == []
