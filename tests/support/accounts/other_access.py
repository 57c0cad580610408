"""Access to an account without its password: an approved application and a script."""

from dataclasses import dataclass

from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    bob,
    make_application,
    open_browser,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.oauth.oauth_wire import (
    TokenPair,
    is_token_valid,
    machine,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    submit_decision,
)
from tests.support.service.live import LiveGatebell


@dataclass(frozen=True, kw_only=True)
class OtherAccess:
    """An application and a personal access token."""

    client: ClientCredentials
    pair: TokenPair
    token: str

    def is_open(self, gatebell: LiveGatebell) -> tuple[bool, bool]:
        """Return whether the application and the script still have access."""
        headers = {"PRIVATE-TOKEN": self.token}
        answer = machine(gatebell).get(f"{gatebell.url}/api/v4/user", headers=headers)
        return is_token_valid(gatebell, self.pair.access), answer.status_code == 200


def give_access(gatebell: LiveGatebell, person: Person) -> OtherAccess:
    """Let a user approve an application, and create a token for a script."""
    client = make_application(gatebell, bob(gatebell))
    browser = open_browser(gatebell, person)
    code = parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, client)))[
        "code"
    ]
    return OtherAccess(
        client=client,
        pair=parse_token_pair(redeem(gatebell, client, code)),
        token=make_token(gatebell, person).clear,
    )
