"""Dates of releases are parsed in any spelling, and contradictions are rejected."""

from datetime import date

import pytest

from domain.releases.version import (
    InvalidReleaseDatesError,
    Release,
    format_release_dates,
    parse_release_dates,
)

BOTH = {Release(16, 7): date(2023, 12, 21), Release(17, 0): date(2024, 5, 16)}


@pytest.mark.parametrize(
    "text",
    [
        "16.7=2023-12-21 17.0=2024-05-16",
        "17.0=2024-05-16, 16.7=2023-12-21",
        " 16.7 = 2023-12-21\r\n17.0\t=2024-05-16\n\n",
        "16.7=2023-12-21;17.0=2024-05-16;",
    ],
)
def test_dates_are_in_the_order_of_the_releases(text: str) -> None:
    assert list(parse_release_dates(text).items()) == list(BOTH.items())


def test_an_empty_text_has_no_dates() -> None:
    assert parse_release_dates(" \n") == {}


def test_formatted_dates_are_parsed_to_the_same_dates() -> None:
    assert format_release_dates(BOTH) == "16.7=2023-12-21\n17.0=2024-05-16"
    assert parse_release_dates(format_release_dates(BOTH)) == BOTH


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("17.0", "'17.0' must be a release and its date"),
        ("17=2024-05-16", "'17=2024-05-16' must be a release and its date"),
        ("17.0=2024-02-30", "'17.0=2024-02-30' must be a release and its date"),
        ("17.0=16.5.2024", "'17.0=16.5.2024' must be"),
        ("17.0=1024-05-16", "'17.0=1024-05-16' must be"),
        ("17.0=٢٠٢٤-05-16", "must be a release and its date"),
        ("x" * 10_000, "'" + "x" * 40 + "' must be"),
        ("17.0=2024-05-16 17.0=2024-05-17", "17.0 has two dates"),
        (
            "17.9=2024-05-16 17.10=2024-05-15",
            "17.10 (2024-05-15) is before 17.9 (2024-05-16)",
        ),
        (" ".join(f"1.{number}=2024-01-01" for number in range(101)), "At most 100 releases"),
    ],
)
def test_errors_name_the_wrong_part(text: str, sentence: str) -> None:
    with pytest.raises(InvalidReleaseDatesError) as caught:
        parse_release_dates(text)
    assert sentence in str(caught.value)
