"""Avatars of users: an initial on a colored background."""

import pytest
from flask.testing import FlaskClient

from domain.accounts.profiles import build_avatar_path, build_avatar_svg


@pytest.mark.parametrize(
    ("name", "letter"),
    [
        ("alice", "A"),
        ("Émile", "%C3%89"),
        ("E\u0301mile", "%C3%89"),
        ("ßeta", "%C3%9F"),
        ("Жанна", "%D0%96"),
        ("жанна", "%D0%96"),
        ("\u0645\u0631\u064a\u0645", "%D9%85"),
        ("\u0926\u0940\u092a\u093e", "%E0%A4%A6"),
        ("  (bob)", "B"),
        ("7 of nine", "7"),
        ("磁盘", "%E7%A3%81"),
        ("🦊 ★", "-"),
        ("", "-"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}<b>", "B"),
    ],
)
def test_the_url_contains_the_initial(name: str, letter: str) -> None:
    assert build_avatar_path(name, 1) == f"/-/pictures/{letter}-137.svg"


def test_avatars_of_consecutive_users_have_different_colors() -> None:
    assert len({build_avatar_path("a", user_id) for user_id in range(1, 100)}) == 99


@pytest.mark.parametrize("letter", ["<", "&", "-", '"', "AB", "", "\u202e", "🦊"])
def test_only_letters_and_digits_are_drawn(letter: str) -> None:
    drawn = build_avatar_svg(letter, 10)
    assert "<text" not in drawn
    assert "<circle" in drawn


@pytest.mark.parametrize("letter", ["A", "Ж", "\u0645", "磁"])
def test_the_letter_is_drawn(letter: str) -> None:
    assert "hsl(10 " in build_avatar_svg(letter, 370)
    assert f">{letter}</text>" in build_avatar_svg(letter, 10)


def test_the_url_of_a_letter_of_any_script_returns_its_avatar(client: FlaskClient) -> None:
    answer = client.get(build_avatar_path("Жанна", 7))
    assert answer.status_code == 200
    assert ">Ж</text>" in answer.text
