"""Everybody's picture: an initial on a colour."""

import pytest

from domain.oauth.pictures import draw_picture, picture_path


@pytest.mark.parametrize(
    ("name", "letter"),
    [
        ("alice", "A"),
        ("Émile", "E"),
        ("  (bob)", "B"),
        ("7 of nine", "7"),
        ("磁盘", "-"),
        ("", "-"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}<b>", "B"),
    ],
)
def test_an_address_holds_the_initial(name: str, letter: str) -> None:
    assert picture_path(name, 1) == f"/-/pictures/{letter}-137.svg"


def test_neighbours_have_colours_of_their_own() -> None:
    assert len({picture_path("a", user_id) for user_id in range(1, 100)}) == 99


@pytest.mark.parametrize("letter", ["<", "&", "-", "é", '"', "AB", ""])
def test_nothing_but_a_letter_or_digit_is_drawn(letter: str) -> None:
    assert "></text>" in draw_picture(letter, 10)


def test_the_letter_is_drawn() -> None:
    assert "hsl(10 " in draw_picture("A", 370)
    assert ">A</text>" in draw_picture("A", 10)
