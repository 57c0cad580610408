"""The reset of a password asks what becomes of the user's personal access tokens."""

import pytest

from tests.support.accounts.administration import at_work, id_of, next_page, press
from tests.support.accounts.other_access import give_access
from tests.support.accounts.people import make_user, open_browser
from tests.support.service.live import LiveGatebell


@pytest.mark.parametrize("answer", [None, "", "perhaps"])
def test_a_reset_asks_what_becomes_of_the_tokens(
    gatebell: LiveGatebell, answer: str | None
) -> None:
    charlie = make_user(gatebell, name="charlie")
    access, browser = give_access(gatebell, charlie), open_browser(gatebell, charlie)
    path = f"/admin/users/{id_of(gatebell, charlie)}"
    assert "1 personal access token" in at_work(gatebell).get(gatebell.url + path).text
    refused = press(gatebell, path, "/reset_password", tokens=answer)
    assert "Choose whether the personal access tokens" in next_page(gatebell, refused)
    assert access.is_open(gatebell) == (True, True)
    assert browser.get(f"{gatebell.url}/groups", allow_redirects=False).status_code == 200
