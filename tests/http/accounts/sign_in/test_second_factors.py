"""Tests of the security settings of a user: authenticator app and recovery codes."""

import re
from functools import cache
from html import unescape

import pyotp
import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from domain.accounts.factors.recovery_codes import RECOVERY_CODE_COUNT
from models import RecoveryCode, TotpDevice
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_user,
    open_browser,
    signed_in,
    try_to_sign_in,
)
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import (
    SECURITY,
    assert_signed_in,
    code_of,
    events_of,
    give_app,
    give_password,
    give_recovery_codes,
    is_signed_in,
    sign_in_with,
    text_of,
    wrong_code_of,
)
from tests.support.wire.garbage import bounded
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("sqlite")

APP = f"{SECURITY}/authenticator"
RENEW = f"{SECURITY}/recovery_codes/renew"
CODES = f"{SECURITY}/recovery_codes"


def set_up(
    gatebell: LiveGatebell, browser: requests.Session, password: str
) -> tuple[pyotp.TOTP, requests.Response]:
    """Set up an app with the key from the page, and submit its code."""
    page = browser.get(gatebell.url + APP)
    app = pyotp.TOTP(text_of(page, "seed").replace(" ", ""))
    form = form_with(page, "code")
    return app, submit(browser, page, form, code=code_of(app), current_password=password)


def codes_on(page: requests.Response) -> list[str]:
    found = text_of(page, "recovery-codes").split()
    assert len(found) == RECOVERY_CODE_COUNT
    return found


def with_password(
    gatebell: LiveGatebell, browser: requests.Session, path: str, password: str
) -> requests.Response:
    page = browser.get(gatebell.url + path)
    form = form_with(page, "current_password")
    return submit(browser, page, form, current_password=password)


@pytest.mark.long
def test_codes_of_an_app_are_required_after_the_set_up(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    app, answer = set_up(gatebell, browser, charlie.password)
    assert (answer.status_code, answer.headers["Location"]) == (302, CODES)
    assert_signed_in(sign_in_with(gatebell, charlie, code_of(app, steps=1)))
    page = browser.get(gatebell.url + SECURITY)
    assert f'href="{APP}/remove"' in page.text
    assert f'href="{APP}"' not in page.text
    assert events_of(gatebell, charlie).count("second_factor.added") == 1


def test_the_qr_code_and_the_key_are_the_same_and_stay_while_the_page_is_open(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    pages = [browser.get(gatebell.url + APP) for _ in range(2)]
    keys = {text_of(page, "seed") for page in pages}
    assert len(keys) == 1
    assert re.fullmatch(r"([A-Z2-7]{4} ){7}[A-Z2-7]{4}", keys.pop())
    assert len({re.search(r'<path d="([^"]*)"', page.text) for page in pages}) == 2
    assert {page.headers["Cache-Control"] for page in pages} == {"no-store"}
    other = open_browser(gatebell, charlie).get(gatebell.url + APP)
    assert text_of(other, "seed") != text_of(pages[0], "seed")


def test_the_code_from_the_set_up_cannot_be_used_again(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    page = browser.get(gatebell.url + APP)
    app = pyotp.TOTP(text_of(page, "seed").replace(" ", ""))
    code = code_of(app)
    form = form_with(page, "code")
    answer = submit(browser, page, form, code=code, current_password=charlie.password)
    assert answer.status_code == 302
    assert sign_in_with(gatebell, charlie, code).status_code == 422


def test_the_first_second_factor_signs_out_other_browsers(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    here, elsewhere = open_browser(gatebell, charlie), open_browser(gatebell, charlie)
    set_up(gatebell, here, charlie.password)
    assert is_signed_in(gatebell, here)
    assert not is_signed_in(gatebell, elsewhere)


@pytest.mark.long
def test_a_wrong_code_or_password_does_not_set_up_an_app(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    page = browser.get(gatebell.url + APP)
    app = pyotp.TOTP(text_of(page, "seed").replace(" ", ""))
    form = form_with(page, "code")
    right, good = code_of(app), charlie.password
    for code, password in (
        (wrong_code_of(app), good),
        (right, "wrong"),
        ("", good),
        (right, ""),
        ("nonsense", good),
        ("x" * 100_000, good),
        ("\x00", good),
    ):
        answer = submit(browser, page, form, code=code, current_password=password)
        assert answer.status_code == 422, answer.text
        assert text_of(answer, "seed") == text_of(page, "seed")
    assert_signed_in(try_to_sign_in(gatebell, charlie.username, charlie.password))


def test_a_second_app_does_not_replace_the_first(gatebell: LiveGatebell, charlie: Person) -> None:
    browser = open_browser(gatebell, charlie)
    page = browser.get(gatebell.url + APP)
    other = pyotp.TOTP(text_of(page, "seed").replace(" ", ""))
    app = give_app(gatebell, charlie)
    form = form_with(page, "code")
    late = submit(browser, page, form, code=code_of(other), current_password=charlie.password)
    assert (late.status_code, late.headers["Location"]) == (302, SECURITY)
    assert_signed_in(sign_in_with(gatebell, charlie, code_of(app)))


@pytest.mark.long
def test_recovery_codes_are_shown_once_and_stored_as_digests(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    app, answer = set_up(gatebell, browser, charlie.password)
    page = browser.get(gatebell.url + CODES)
    codes = codes_on(page)
    assert page.headers["Cache-Control"] == "no-store"
    again = browser.get(gatebell.url + CODES, allow_redirects=False)
    assert (again.status_code, again.headers["Location"]) == (302, SECURITY)
    with database_of(gatebell) as session:
        kept = session.scalars(select(RecoveryCode.digest)).all()
        seeds = session.scalars(select(TotpDevice.seed_ciphertext)).all()
    assert not any(
        code.replace("-", "").encode() in bytes(digest) for code in codes for digest in kept
    )
    assert not any(app.secret in seed for seed in seeds)
    log = gatebell.log_text()
    assert not any(secret in log for secret in (app.secret, *codes))
    assert answer.headers["Location"] == CODES
    assert_signed_in(sign_in_with(gatebell, charlie, codes[3]))
    left = browser.get(gatebell.url + SECURITY).text
    assert f"{RECOVERY_CODE_COUNT - 1} of {RECOVERY_CODE_COUNT} codes are left" in left


def test_recovery_codes_can_be_downloaded_as_a_file_without_scripts(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    set_up(gatebell, browser, charlie.password)
    page = browser.get(gatebell.url + CODES)
    codes = codes_on(page)
    file = submit(browser, page, form_with(page, "code"))
    assert file.status_code == 200
    assert file.headers["Content-Type"].startswith("text/plain")
    assert file.headers["Content-Disposition"] == 'attachment; filename="recovery-codes.txt"'
    assert file.headers["Cache-Control"] == "no-store"
    assert file.text.split()[-RECOVERY_CODE_COUNT:] == codes
    assert charlie.username in file.text
    # The file contains only valid codes, even if a forged form sends other values.
    junk = submit(browser, page, form_with(page, "code"), code=["<script>", "x", codes[0]])
    assert junk.text.split()[-1:] == codes[:1]
    assert "script" not in junk.text


@pytest.mark.long
@pytest.mark.both_databases
def test_new_recovery_codes_replace_the_old_ones(gatebell: LiveGatebell, charlie: Person) -> None:
    give_app(gatebell, charlie)
    old = give_recovery_codes(gatebell, charlie)
    browser, page = give_password(gatebell, charlie)
    submit(browser, page, form_with(page, "code"), code=old[0])
    assert with_password(gatebell, browser, RENEW, "wrong").status_code == 422
    assert with_password(gatebell, browser, RENEW, charlie.password).status_code == 302
    new = codes_on(browser.get(gatebell.url + CODES))
    assert not set(new) & set(old)
    assert sign_in_with(gatebell, charlie, old[1]).status_code == 422
    assert_signed_in(sign_in_with(gatebell, charlie, new[0]))
    assert events_of(gatebell, charlie).count("recovery_codes.made") == 1


@pytest.mark.long
def test_removing_the_app_needs_the_password_and_keeps_it(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    app = give_app(gatebell, charlie)
    code = give_recovery_codes(gatebell, charlie)[0]
    browser, page = give_password(gatebell, charlie)
    submit(browser, page, form_with(page, "code"), code=code_of(app))
    for wrong in ("", "wrong"):
        assert with_password(gatebell, browser, f"{APP}/remove", wrong).status_code == 422
    assert sign_in_with(gatebell, charlie, "no code").status_code == 422
    gone = with_password(gatebell, browser, f"{APP}/remove", charlie.password)
    assert (gone.status_code, gone.headers["Location"]) == (302, SECURITY)
    assert_signed_in(try_to_sign_in(gatebell, charlie.username, charlie.password))
    # The old recovery codes are not valid for the next app, either.
    give_app(gatebell, charlie)
    assert sign_in_with(gatebell, charlie, code).status_code == 422
    assert events_of(gatebell, charlie).count("second_factor.removed") == 1


def test_a_user_without_a_second_factor_has_no_recovery_codes(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    for path in (RENEW, CODES):
        answer = browser.get(gatebell.url + path, allow_redirects=False)
        assert (answer.status_code, answer.headers["Location"]) == (302, SECURITY)
    page = browser.get(gatebell.url + SECURITY)
    assert "Two-factor authentication is off" in unescape(page.text)
    assert "Recovery codes" not in page.text


@pytest.mark.long
def test_password_guesses_on_the_settings_pages_are_limited(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    assert statuses_of_guesses(gatebell, browser, APP) == [422] * 10 + [429]


@pytest.mark.long
def test_guesses_on_all_pages_count_together(gatebell: LiveGatebell, charlie: Person) -> None:
    app = give_app(gatebell, charlie)
    browser, page = give_password(gatebell, charlie)
    submit(browser, page, form_with(page, "code"), code=code_of(app))
    assert statuses_of_guesses(gatebell, browser, f"{APP}/remove", 6) == [422] * 6
    assert statuses_of_guesses(gatebell, browser, RENEW, 5) == [422] * 4 + [429]
    assert statuses_of_guesses(gatebell, browser, f"{APP}/remove", 1) == [429]


def statuses_of_guesses(
    gatebell: LiveGatebell, browser: requests.Session, path: str, times: int = 11
) -> list[int]:
    page = browser.get(gatebell.url + path)
    form = form_with(page, "current_password")
    return [
        submit(browser, page, form, code="123456", current_password=f"wrong {n}").status_code
        for n in range(times)
    ]


@cache
def guesser(gatebell: LiveGatebell) -> Person:
    """Create a user whose password is guessed, separate from the shared users."""
    return make_user(gatebell, name="guesser")


@pytest.mark.long
@bounded(6)
@given(code=st.text(max_size=80), password=st.text(max_size=80))
def test_garbage_in_the_form_is_rejected(
    live_postgres: LiveGatebell, code: str, password: str
) -> None:
    browser = signed_in(live_postgres, guesser(live_postgres))
    page = browser.get(live_postgres.url + APP)
    values = {"code": code, "current_password": password}
    encoded = {name: text.encode("utf-8", "replace").decode() for name, text in values.items()}
    answer = submit(browser, page, form_with(page, "code"), **encoded)
    assert answer.status_code in {422, 429}
