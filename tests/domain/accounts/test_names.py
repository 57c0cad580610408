"""Validation of names, roles and passwords, and the messages for invalid ones."""

import pytest

from domain.access.roles import Role, parse_role
from domain.accounts.names import check_path, check_username, slugify_name
from domain.accounts.passwords import (
    MAX_PASSWORD_LENGTH,
    HashCost,
    check_password,
    check_password_strength,
    hash_password,
)
from tests.support.sign_in.password_rules import QUICK

RESERVED = frozenset({"oauth", "-"})


@pytest.mark.parametrize("path", ["acme", "Acme", "a", "_x", "1", "a.b-c_d", "acme/oauth", "a/b/c"])
def test_valid_paths_are_accepted(path: str) -> None:
    check_path(path, reserved=RESERVED)


@pytest.mark.parametrize(
    "path",
    ["", "/", "a/", "/a", "a//b", "a b", "é", "-a", ".a", "a.", "a.git", "a.JSON", "a.atom",
     "..", "a/../b", "oauth", "OAuth", "oauth/x", "a\n", "a\x00", "x" * 101, "a?b", "a#b", "a%2f"],
)  # fmt: skip
def test_invalid_paths_are_rejected(path: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        check_path(path, reserved=RESERVED)


@pytest.mark.parametrize("name", ["alice@example.org", "a/b", "", "alice.git"])
def test_a_user_name_is_a_single_path_segment(name: str) -> None:
    with pytest.raises(ValueError, match="A username"):
        check_username(name)


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("Night shift", "night-shift"),
        ("  <b>Über!</b> ", "b-ber-b"),
        ("磁盘", ""),
        ("a.b_c", "a.b_c"),
        ("x" * 200, "x" * 100),
    ],
)
def test_a_display_name_becomes_a_readable_path_segment(name: str, segment: str) -> None:
    assert slugify_name(name) == segment


def test_roles_are_ordered_from_guest_to_owner() -> None:
    assert list(Role) == sorted(Role)
    assert Role.GUEST < Role.PLANNER < Role.REPORTER < Role.DEVELOPER < Role.MAINTAINER < Role.OWNER


@pytest.mark.parametrize("role", list(Role))
def test_a_role_is_found_by_its_name_in_any_case_and_by_its_number(role: Role) -> None:
    assert {
        parse_role(role.label),
        parse_role(role.name),
        parse_role(f" {role.label.lower()} "),
    } == {role}
    assert parse_role(str(int(role))) is role


@pytest.mark.parametrize("word", ["", "king", "0", "60", "3e1", "Owner!"])
def test_unknown_role_names_are_rejected(word: str) -> None:
    with pytest.raises(ValueError, match="Use one of Guest, Planner, Reporter"):
        parse_role(word)


def test_only_the_correct_password_matches_its_hash() -> None:
    kept = hash_password("correct horse battery", QUICK)
    assert kept.startswith("$argon2id$")
    assert check_password("correct horse battery", kept, QUICK).is_right
    assert not check_password("correct horse batterY", kept, QUICK).is_right
    assert not check_password("", kept, QUICK).is_right
    assert not check_password("correct horse battery", None, QUICK).is_right
    assert not check_password("correct horse battery", "no hash at all", QUICK).is_right
    assert hash_password("correct horse battery", QUICK) != kept


def test_a_hash_with_another_cost_is_outdated() -> None:
    kept = hash_password("correct horse battery", QUICK)
    assert not check_password("correct horse battery", kept, QUICK).is_hash_outdated
    seen = check_password("correct horse battery", kept, HashCost())
    assert seen.is_right
    assert seen.is_hash_outdated


def test_an_overlong_password_is_not_hashed() -> None:
    long = "x" * (MAX_PASSWORD_LENGTH + 1)
    assert not check_password(long, hash_password(long, QUICK), QUICK).is_right


@pytest.mark.parametrize(
    ("password", "sentence"),
    [
        ("short", "at least 12 characters"),
        ("x" * 1001, "at most 1000 characters"),
        ("my name is Alice, yes", "must not contain the username"),
        ("abcabcabcabc", "more than three different characters"),
    ],
)
def test_a_weak_password_is_rejected_with_a_message(password: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_password_strength(password, username="alice", minimum=12)
