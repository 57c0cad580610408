"""How often may be guessed at one address, and in how many ways."""

from tests.http.signing_in.test_known_browsers import known_browser, try_to_sign_in
from tests.support.accounts.people import make_user
from tests.support.service.live import LiveGatebell
from tests.support.signing_in.second_factors import (
    assert_signed_in,
    code_of,
    give_app,
    give_code,
    give_password,
    give_recovery_codes,
    wrong_code_of,
)
from tests.support.wire.html_forms import form_with, submit


def test_wrong_codes_and_wrong_passwords_of_an_address_are_counted_together(
    one_house: LiveGatebell,
) -> None:
    charlie, dora, emil = (make_user(one_house, name=name) for name in ("charlie", "dora", "emil"))
    apps = {person: give_app(one_house, person) for person in (charlie, dora)}
    browser, page = give_password(one_house, charlie)
    wrong = wrong_code_of(apps[charlie])
    assert [give_code(browser, page, wrong).status_code for _ in range(3)] == [422] * 3
    browser, page = give_password(one_house, dora)
    assert give_code(browser, page, wrong_code_of(apps[dora])).status_code == 422
    assert try_to_sign_in(one_house, one_house.http(), emil.username, "wrong") == 422
    assert try_to_sign_in(one_house, one_house.http(), emil.username, emil.password) == 429
    answer = give_code(browser, page, code_of(apps[dora]))
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) >= 1


def test_the_limit_for_an_account_is_a_setting_and_a_right_code_gives_the_address_its_try_back(
    one_house: LiveGatebell,
) -> None:
    charlie = make_user(one_house, name="charlie")
    give_app(one_house, charlie)
    codes = give_recovery_codes(one_house, charlie)
    for code in codes[:7]:
        assert_signed_in(give_code(*give_password(one_house, charlie), code))
    browser, page = give_password(one_house, charlie)
    statuses = [give_code(browser, page, "000000").status_code for _ in range(4)]
    assert statuses == [422] * 3 + [429]


def test_both_steps_are_open_to_a_known_browser_at_an_address_that_has_to_wait(
    one_house: LiveGatebell,
) -> None:
    person = make_user(one_house)
    browser = known_browser(one_house, person)
    seed = give_app(one_house, person)
    wrong = [
        try_to_sign_in(one_house, one_house.http(), f"somebody-{n}", "wrong") for n in range(6)
    ]
    assert wrong == [422] * 5 + [429]
    page = browser.get(f"{one_house.url}/users/sign_in")
    form = form_with(page, "password")
    first = submit(browser, page, form, login=person.username, password=person.password)
    assert "two_factor" in first.headers["Location"]
    page = browser.get(one_house.url + first.headers["Location"])
    assert give_code(browser, page, code_of(seed)).headers["Location"] == "/"
