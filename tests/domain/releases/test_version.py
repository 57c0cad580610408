"""Releases are compared as numbers."""

import pytest

from domain.releases.version import Release, parse_release


@pytest.mark.parametrize(
    ("text", "release"),
    [("18.0", Release(18, 0)), ("17.10", Release(17, 10)), ("0.0", Release(0, 0))],
)
def test_a_release_is_two_numbers(text: str, release: Release) -> None:
    assert parse_release(text) == release
    assert str(release) == text


@pytest.mark.parametrize(
    "text", ["", "18", "18.", ".0", "18.0.1", "v18.0", " 18.0", "18.0\n", "-1.0", "99999.0", "१.0"]
)
def test_other_texts_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as 18\.0"):
        parse_release(text)


def test_releases_are_compared_as_numbers() -> None:
    assert Release(17, 9) < Release(17, 10) < Release(18, 0)
    assert max(Release(16, 11), Release(9, 99)) == Release(16, 11)
