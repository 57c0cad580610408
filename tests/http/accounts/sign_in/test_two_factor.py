"""Tests of the second step of a sign-in: codes of an authenticator app, and recovery codes."""

from unicodedata import lookup, name

import pyotp
import pytest
from sqlalchemy import func, select

from models import AttemptCount
from tests.http.accounts.settings.test_sessions import COOKIE, with_cookie
from tests.support.accounts.people import Person, database_of, make_user, set_state, sign_in
from tests.support.oauth.oauth_wire import (
    authorization_url,
    open_and_follow,
    parse_redirect,
    server_application,
)
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import (
    SECURITY,
    TWO_FACTOR,
    assert_must_begin_again,
    assert_signed_in,
    code_of,
    events_of,
    give_app,
    give_code,
    give_password,
    give_recovery_codes,
    is_signed_in,
    methods_of,
    sign_in_with,
    wrong_code_of,
)
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")

NEW_PASSWORD = "a new password, much better"


@pytest.fixture
def app(gatebell: LiveGatebell, charlie: Person) -> pyotp.TOTP:
    """The user's authenticator app."""
    return give_app(gatebell, charlie)


@pytest.mark.long
def test_a_password_without_the_second_factor_does_not_sign_in(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    browser, page = give_password(gatebell, charlie)
    assert page.url == f"{gatebell.url}{TWO_FACTOR}"
    assert charlie.username in page.text
    assert not is_signed_in(gatebell, browser)
    assert methods_of(gatebell, charlie) == ""
    assert_signed_in(give_code(browser, page, code_of(app)))
    assert is_signed_in(gatebell, browser)
    assert methods_of(gatebell, charlie) == "pwd otp mfa"
    activity = browser.get(f"{gatebell.url}/-/user_settings/activity")
    assert "methods: <bdi>password, code</bdi>" in activity.text


def test_phones_show_digits_for_a_code_and_letters_for_a_recovery_code(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    browser, page = give_password(gatebell, charlie)
    assert 'inputmode="numeric"' in page.text
    letters = browser.get(f"{gatebell.url}{TWO_FACTOR}?recovery=yes")
    assert 'inputmode="numeric"' not in letters.text
    wrong = submit(browser, letters, form_with(letters, "code"), code="nope")
    assert (wrong.status_code, "inputmode" in wrong.text) == (422, False)
    assert_signed_in(give_code(browser, letters, code_of(app)))


def test_a_password_is_enough_without_a_second_factor(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    assert is_signed_in(gatebell, sign_in(gatebell, charlie))
    assert methods_of(gatebell, charlie) == "pwd"


@pytest.mark.long
def test_the_requested_page_is_kept_over_both_steps(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    browser, page = give_password(gatebell, charlie, next="/groups?page=2&x=a+b")
    slip = give_code(browser, page, "no code")
    assert slip.status_code == 422
    answer = give_code(browser, slip, code_of(app))
    assert_signed_in(answer, lands_on="/groups?page=2&x=a+b")


def test_next_of_the_second_step_does_not_redirect_to_other_sites(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    browser, page = give_password(gatebell, charlie)
    form = form_with(page, "code")
    form.action = f"{TWO_FACTOR}?next=//evil.example/"
    assert_signed_in(submit(browser, page, form, code=code_of(app)))


def test_a_code_may_contain_spaces_dashes_and_wide_digits(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    code = code_of(app)
    wide = "".join(lookup(f"FULLWIDTH DIGIT {name(digit)[6:]}") for digit in code[4:])
    assert_signed_in(sign_in_with(gatebell, charlie, f" {code[:2]} {code[2:4]}-{wide} "))


@pytest.mark.long
def test_a_clock_may_deviate_by_half_a_minute(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    browser, page = give_password(gatebell, charlie)
    for steps in (-3, 3):
        assert give_code(browser, page, code_of(app, steps=steps)).status_code == 422, steps
    assert_signed_in(give_code(browser, page, code_of(app, steps=-1)))
    assert_signed_in(sign_in_with(gatebell, charlie, code_of(app, steps=1)))


@pytest.mark.both_databases
def test_a_code_and_earlier_codes_cannot_be_used_again(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    earlier, code = code_of(app, steps=-1), code_of(app)
    assert_signed_in(sign_in_with(gatebell, charlie, code))
    browser, page = give_password(gatebell, charlie)
    for spent in (code, earlier):
        answer = give_code(browser, page, spent)
        assert answer.status_code == 422
        assert "wrong or was already used" in answer.text
    assert not is_signed_in(gatebell, browser)
    assert_signed_in(give_code(browser, page, code_of(app, steps=1)))


@pytest.mark.long
def test_a_code_of_another_users_app_is_rejected(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    dora = make_user(gatebell, name="dora")
    other = give_app(gatebell, dora)
    give_recovery_codes(gatebell, charlie)
    theirs = give_recovery_codes(gatebell, dora)
    assert app.secret != other.secret
    for code in (code_of(other), theirs[0]):
        assert sign_in_with(gatebell, charlie, code).status_code == 422


@pytest.mark.long
@pytest.mark.both_databases
def test_a_recovery_code_works_once_in_any_spelling(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    del app
    first, second, *_ = give_recovery_codes(gatebell, charlie)
    shouted = first.upper().replace("-", " ").replace("0", "O").replace("1", "l")
    assert_signed_in(sign_in_with(gatebell, charlie, f" {shouted} "))
    assert sign_in_with(gatebell, charlie, first).status_code == 422
    assert_signed_in(sign_in_with(gatebell, charlie, second.replace("-", "")))
    told = [kind for kind in events_of(gatebell, charlie) if "recovery" in kind]
    assert told == ["recovery_codes.used"] * 2


def counted_guesses(gatebell: LiveGatebell) -> int:
    with database_of(gatebell) as session:
        return session.scalar(select(func.sum(AttemptCount.count))) or 0


@pytest.mark.long
def test_malformed_codes_are_rejected_but_not_counted(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    browser, page = give_password(gatebell, charlie)
    before = counted_guesses(gatebell)
    none = ("", " ", "12345", "1234567", "abc", "x" * 100_000, "12\x0034", "\x00" * 6, "🔔" * 6)
    for typed in none:
        answer = give_code(browser, page, typed)
        assert answer.status_code == 422, (typed, answer.text)
        assert counted_guesses(gatebell) == before, typed
    assert give_code(browser, page, wrong_code_of(app)).status_code == 422
    assert counted_guesses(gatebell) > before
    assert_signed_in(give_code(browser, page, code_of(app)))


# Guesses of codes


@pytest.mark.long
@pytest.mark.advisory("CVE-2024-32868")
@pytest.mark.both_databases
def test_too_many_code_guesses_lock_out_the_right_code_regardless_of_the_password(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    recovery_code = give_recovery_codes(gatebell, charlie)[0]
    wrong = wrong_code_of(app)
    statuses = []
    for _ in range(2):
        browser, page = give_password(gatebell, charlie)
        statuses += [give_code(browser, page, wrong).status_code for _ in range(5)]
    assert statuses == [422] * 10
    browser, page = give_password(gatebell, charlie)
    for code in (code_of(app), recovery_code):
        answer = give_code(browser, page, code)
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["Retry-After"]) <= 600
        assert "Too many attempts" in answer.text
    assert not is_signed_in(gatebell, browser)
    told = events_of(gatebell, charlie)
    assert told.count("second_factor.failed") == 10


@pytest.mark.long
@pytest.mark.both_databases
def test_a_right_code_resets_the_count_of_guesses(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    wrong = wrong_code_of(app)
    codes = iter(give_recovery_codes(gatebell, charlie))
    for _ in range(2):
        browser, page = give_password(gatebell, charlie)
        for _ in range(7):
            assert give_code(browser, page, wrong).status_code == 422
        assert_signed_in(give_code(browser, page, next(codes)))


# Pending sign-ins between the two steps


def test_the_second_step_needs_the_first_step(gatebell: LiveGatebell) -> None:
    browser = gatebell.http()
    answer = browser.get(f"{gatebell.url}{TWO_FACTOR}?next=/groups", allow_redirects=False)
    assert_must_begin_again(answer)
    assert answer.headers["Location"].endswith("next=/groups")
    page = browser.get(f"{gatebell.url}/users/sign_in")
    token = form_with(page, "password").value("csrf_token")
    for path in (TWO_FACTOR, f"{TWO_FACTOR}/passkey"):
        form = {"csrf_token": token, "code": "123456", "credential": "{}"}
        sent = browser.post(f"{gatebell.url}{path}", form, allow_redirects=False)
        assert_must_begin_again(sent)


@pytest.mark.long
@pytest.mark.both_databases
def test_a_pending_sign_in_works_once_even_with_a_copied_cookie(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    browser, page = give_password(gatebell, charlie)
    thief = with_cookie(gatebell, browser.cookies[COOKIE])
    assert_signed_in(give_code(browser, page, code_of(app)))
    assert_must_begin_again(give_code(thief, page, code_of(app, steps=1)))
    assert not is_signed_in(gatebell, thief)
    assert is_signed_in(gatebell, browser)


def test_the_cookie_from_between_the_steps_is_useless_after_them(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    browser, page = give_password(gatebell, charlie)
    planted = browser.cookies[COOKIE]
    assert_signed_in(give_code(browser, page, code_of(app)))
    assert browser.cookies[COOKIE] != planted
    assert not is_signed_in(gatebell, with_cookie(gatebell, planted))


def test_a_changed_pending_sign_in_is_rejected(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    browser, page = give_password(gatebell, charlie)
    cookie = browser.cookies[COOKIE]
    other = "A" if cookie[20] != "A" else "B"
    for forged in (cookie[:-1], cookie[:20] + other + cookie[21:], f"x{cookie}", "", "x"):
        forger = with_cookie(gatebell, forged)
        answer = forger.get(f"{gatebell.url}{TWO_FACTOR}", allow_redirects=False)
        assert_must_begin_again(answer)
    assert_signed_in(give_code(browser, page, code_of(app)))


@pytest.mark.long
def test_a_form_of_another_session_is_rejected(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    _, page = give_password(gatebell, charlie)
    other, _ = give_password(gatebell, charlie)
    for browser in (other, gatebell.http()):
        answer = give_code(browser, page, code_of(app))
        # The page asks for the code again.
        assert (answer.status_code, answer.headers["Location"]) == (303, TWO_FACTOR)
        assert not is_signed_in(gatebell, browser)


@pytest.mark.parametrize("state", ["locked", "blocked"])
def test_a_user_who_is_locked_between_the_steps_cannot_sign_in(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP, state: str
) -> None:
    browser, page = give_password(gatebell, charlie)
    set_state(gatebell, charlie, state)
    assert_must_begin_again(give_code(browser, page, code_of(app)))
    assert not is_signed_in(gatebell, browser)


@pytest.mark.long
def test_a_password_change_between_the_steps_ends_the_pending_sign_in(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    inside, first = give_password(gatebell, charlie)
    outside, second = give_password(gatebell, charlie)
    assert_signed_in(give_code(inside, first, code_of(app)))
    page = inside.get(f"{gatebell.url}{SECURITY}")
    words = {"current_password": charlie.password, "new_password": NEW_PASSWORD}
    form = form_with(page, "new_password")
    changed = submit(inside, page, form, repeat_password=NEW_PASSWORD, **words)
    assert changed.status_code == 302, changed.text
    assert_must_begin_again(give_code(outside, second, code_of(app, steps=1)))


def test_an_authorization_request_continues_after_both_steps(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    url = authorization_url(gatebell, server_application(gatebell))
    browser, page = give_password(gatebell, charlie, next=url.removeprefix(gatebell.url))
    answer = give_code(browser, page, code_of(app))
    assert "code" in parse_redirect(
        open_and_follow(browser, gatebell.url + answer.headers["Location"])
    )


# Lost second factors


@pytest.mark.long
def test_an_operator_can_remove_second_factors(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    del app
    give_recovery_codes(gatebell, charlie)
    browser, page = give_password(gatebell, charlie)
    command = ("users", "remove-second-factors", charlie.username)
    assert gatebell.cli(*command) == {"username": charlie.username, "removed": True}
    assert gatebell.cli(*command) == {"username": charlie.username, "removed": False}
    assert_must_begin_again(give_code(browser, page, "123456"))
    assert is_signed_in(gatebell, sign_in(gatebell, charlie))
    assert events_of(gatebell, charlie).count("second_factor.removed") == 1


@pytest.mark.long
def test_sign_ins_and_sign_outs_are_recorded(
    gatebell: LiveGatebell, charlie: Person, app: pyotp.TOTP
) -> None:
    sign_in_page = gatebell.http()
    page = sign_in_page.get(f"{gatebell.url}/users/sign_in")
    submit(sign_in_page, page, form_with(page, "password"), login=charlie.email, password="wrong")
    browser, page = give_password(gatebell, charlie)
    give_code(browser, page, wrong_code_of(app))
    give_code(browser, page, code_of(app))
    page = browser.get(f"{gatebell.url}{SECURITY}")
    token = form_with(page, "new_password").value("csrf_token")
    browser.post(f"{gatebell.url}/users/sign_out", {"csrf_token": token})
    assert events_of(gatebell, charlie) == [
        "sign_in.failed",
        "second_factor.failed",
        "sign_in.succeeded",
        "sign_in.ended",
    ]
