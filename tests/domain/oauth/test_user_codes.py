"""Device codes that users type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.oauth.clients.user_agents import describe_device
from domain.oauth.device_authorizations import (
    MAX_TYPED_CODE_LENGTH,
    USER_CODE_ALPHABET,
    format_user_code,
    generate_user_code,
    parse_user_code,
)

CODES = st.text(USER_CODE_ALPHABET, min_size=8, max_size=8)
BETWEEN = st.text(st.sampled_from(" -\t\u00a0\u2013\u2014\u2011\u3000\u200b\u202d"), max_size=3)


@pytest.mark.rfc("rfc8628-5.1-a", "rfc8628-6.1-a")
def test_a_new_code_has_eight_letters_that_spell_no_word() -> None:
    made = {generate_user_code() for _ in range(500)}
    assert len(made) == 500
    assert {len(code) for code in made} == {8}
    assert set("".join(made)) == set("BCDFGHJKLMNPQRSTVWXZ")


def test_a_code_is_shown_in_two_groups_of_four() -> None:
    assert format_user_code("BCDFGHJK") == "BCDF-GHJK"


@given(code=CODES)
def test_a_displayed_code_is_parsed_to_the_same_code(code: str) -> None:
    assert parse_user_code(format_user_code(code)) == code


@pytest.mark.rfc("rfc8628-6.1-a")
@given(code=CODES, between=st.lists(BETWEEN, min_size=9, max_size=9), lower=st.booleans())
def test_case_spaces_and_dashes_are_ignored(code: str, between: list[str], lower: bool) -> None:  # noqa: FBT001 - a column of the table
    letters = code.lower() if lower else code
    typed = between[0] + "".join(map("".join, zip(letters, between[1:], strict=True)))
    assert parse_user_code(typed) == code


def test_full_width_letters_are_accepted() -> None:
    wide = "".join(chr(ord(letter) + 0xFEE0) for letter in "bcdf-GHJK")
    assert parse_user_code(wide) == "BCDFGHJK"


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "BCDF",
        "BCDF-GHJ",
        "BCDF-GHJKL",
        "ACDF-GHJK",
        "BCDF-GHJ1",
        "BCDF_GHJK",
        "BCDF\x00GHJK",
        "BCDFGHJK" + " " * MAX_TYPED_CODE_LENGTH,
        "\ufffe",
    ],
)
def test_other_texts_are_no_codes(typed: str) -> None:
    assert parse_user_code(typed) is None


@given(typed=st.text())
def test_any_text_is_a_code_or_none(typed: str) -> None:
    code = parse_user_code(typed)
    assert code is None or (len(code) == 8 and set(code) <= set(USER_CODE_ALPHABET))


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        ("curl/8.5.0", "curl"),
        ("python-requests/2.32.3", "a Python program"),
        ("Go-http-client/1.1", "a Go program"),
        (
            "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0",
            "Firefox on Linux",
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/130.0 Safari/537.36 Edg/130.0",
            "Edge on Windows",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1",
            "Safari on an iPhone",
        ),
        ("Mozilla/5.0 (Web0S; Linux/SmartTV) Chrome/94.0 Safari/537.36", "Chrome on a television"),
        ("Weather Station/2.1 (rev 7)", "Weather Station"),
        ("<script>alert(1)</script>", "an unknown device"),
        ("", "an unknown device"),
        (None, "an unknown device"),
    ],
)
def test_a_device_is_named_in_words(user_agent: str | None, words: str) -> None:
    assert describe_device(user_agent) == words


@given(user_agent=st.text(max_size=255))
def test_every_device_gets_a_short_name(user_agent: str) -> None:
    assert 0 < len(describe_device(user_agent)) <= 60
