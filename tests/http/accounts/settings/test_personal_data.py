"""Tests of exporting and erasing personal data."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from sqlalchemy import select

from domain.access.roles import Role
from domain.accounts.personal_data.inventory import (
    PERSONAL_DATA,
    ErasureRule,
    find_unlisted_columns,
)
from domain.core.keyring import Keyring
from domain.delivery.mail.outbox import NewEmail, queue_emails
from models import Application, Base, Member, User
from tests.support.accounts.administration import (
    find_user_id,
    get_administrator_browser,
    get_shared_administrator,
    submit_form_by_ending,
    submit_form_by_field,
)
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    alice,
    bob,
    database_of,
    make_application,
    make_project,
    make_user,
    now,
    open_browser,
    settings_of,
    unique,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import connect
from tests.support.oauth.oauth_wire import (
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    refresh,
    submit_decision,
    token_info,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit
from web.jobs.retention import seal_audit_events

pytestmark = pytest.mark.one_database("postgres")

ROOT = Path(__file__).parents[4]


class Owner:
    """A user who owns an application."""

    def __init__(self, gatebell: LiveGatebell) -> None:
        self.person = make_user(gatebell, name="charlie")
        self.id = find_user_id(gatebell, self.person)
        self.own = make_application(gatebell, self.person, name="Own Board")


class Charlie(Owner):
    """A user with personal data in many tables."""

    def __init__(self, gatebell: LiveGatebell) -> None:
        super().__init__(gatebell)
        browser = self.browser = open_browser(gatebell, self.person)
        board = self.board = make_application(gatebell, bob(gatebell), name="Deploy Board")
        code = parse_redirect(
            submit_decision(browser, open_authorization(browser, gatebell, board))
        )["code"]
        self.pair = parse_token_pair(redeem(gatebell, board, code))
        self.token = make_token(gatebell, self.person, name="nightly").clear
        endpoint = connect(gatebell)
        endpoint.accepted()
        self.alert = f"{gatebell.url}/{endpoint.project}/-/alerts/1"
        give_role(gatebell, endpoint.project, self.person, Role.DEVELOPER)
        self._press("/assignee", assignee=self.person.username)
        self._press("/notes", text="The volume is full.")
        message = NewEmail(
            key=unique("letter"), recipient=self.person.email, subject="Hello", text="Charlie!"
        )
        with database_of(gatebell) as session:
            keyring = Keyring(settings_of(gatebell).secret_key)
            queue_emails([message], session=session, keyring=keyring, now=now())
        seal_audit_events(settings_of(gatebell))

    def _press(self, ending: str, **values: str) -> None:
        page = self.browser.get(self.alert)
        assert submit(self.browser, page, form_to(page, ending), **values).status_code == 302


@pytest.fixture
def owner(gatebell: LiveGatebell) -> Owner:
    return Owner(gatebell)


@pytest.fixture
def charlie(gatebell: LiveGatebell) -> Charlie:
    return Charlie(gatebell)


def api(
    gatebell: LiveGatebell, person: Person, method: str, path: str, **query: str
) -> requests.Response:
    token = make_token(gatebell, person).clear
    return requests.request(
        method,
        f"{gatebell.url}/api/v4/users/{path}",
        params=query,
        headers={"PRIVATE-TOKEN": token},
        timeout=30,
    )


def erase(gatebell: LiveGatebell, owner: Owner, **query: str) -> requests.Response:
    return api(gatebell, get_shared_administrator(gatebell), "DELETE", str(owner.id), **query)


def traces_of(gatebell: LiveGatebell, *names: str) -> list[str]:
    """Return all rows of the database that contain a name, regardless of case."""
    found = []
    with database_of(gatebell) as session:
        for table in Base.metadata.sorted_tables:
            for row in session.execute(select(table)):
                said = repr(tuple(row)).lower()
                found += [f"{table.name}: {said}" for name in names if name.lower() in said]
    return found


@pytest.mark.long
@pytest.mark.both_databases
def test_an_export_contains_all_personal_data_and_no_secrets(
    gatebell: LiveGatebell, charlie: Charlie
) -> None:
    answer = api(gatebell, charlie.person, "GET", f"{charlie.id}/export")
    assert answer.status_code == 200
    found = answer.json()
    assert found["account"]["email"] == charlie.person.email
    assert set(found) == {"exported_at"} | {table.name for table in PERSONAL_DATA}
    for name in (
        *("sign_ins", "personal_access_tokens", "access_tokens", "authorizations", "consents"),
        *("memberships", "applications", "assignments", "alert_activity", "mails", "audit_events"),
    ):
        assert found[name], name
    assert "The volume is full." in {row["text"] for row in found["alert_activity"]}
    assert not any("digest" in name or "ciphertext" in name for name in _names_in(found))
    assert "$argon2" not in answer.text


def _names_in(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for each in value for name in _names_in(each)]
    if isinstance(value, dict):
        return [*value, *(name for each in value.values() for name in _names_in(each))]
    return []


def test_only_the_user_and_administrators_can_export_personal_data(
    gatebell: LiveGatebell, charlie: Charlie
) -> None:
    path = f"{charlie.id}/export"
    assert api(gatebell, bob(gatebell), "GET", path).status_code == 404
    assert api(gatebell, get_shared_administrator(gatebell), "GET", path).status_code == 200
    profile = charlie.browser.get(f"{gatebell.url}/-/user_settings/profile")
    own = submit(charlie.browser, profile, form_to(profile, "/export"))
    assert own.json()["account"]["username"] == charlie.person.username
    assert "attachment" in own.headers["Content-Disposition"]
    page = submit_form_by_ending(gatebell, f"/admin/users/{charlie.id}", "/export")
    assert page.json()["account"]["id"] == charlie.id
    printed = gatebell.cli("users", "export", charlie.person.username)
    assert printed["account"]["id"] == charlie.id
    kinds = [row["kind"] for row in printed["audit_events"]]
    assert kinds.count("user.exported") == 4  # One of the events was recorded by this command.


@pytest.mark.long
@pytest.mark.both_databases
def test_an_erased_user_leaves_no_name_and_the_account_cannot_be_used(
    gatebell: LiveGatebell, charlie: Charlie
) -> None:
    assert traces_of(gatebell, charlie.person.username, charlie.person.email)
    assert erase(gatebell, charlie, applications_to=alice(gatebell).username).status_code == 204

    assert traces_of(gatebell, charlie.person.username, charlie.person.email) == []
    assert token_info(gatebell, charlie.pair.access).status_code == 401
    assert refresh(gatebell, charlie.board, charlie.pair.refresh).status_code == 400
    whoami = {"PRIVATE-TOKEN": charlie.token}
    user = requests.get(f"{gatebell.url}/api/v4/user", headers=whoami, timeout=30)
    assert user.status_code == 401
    profile = f"{gatebell.url}/-/user_settings/profile"
    assert charlie.browser.get(profile, allow_redirects=False).status_code == 302
    assert (
        get_administrator_browser(gatebell)
        .get(f"{gatebell.url}/admin/users/{charlie.id}")
        .status_code
        == 404
    )
    with database_of(gatebell) as session:
        member = select(Member).where(Member.user_id == charlie.id)
        assert session.scalars(member).first() is None


@pytest.mark.both_databases
def test_events_and_notes_of_an_erased_user_stay_and_the_audit_log_is_intact(
    gatebell: LiveGatebell, charlie: Charlie
) -> None:
    assert erase(gatebell, charlie, delete_applications="true").status_code == 204
    pseudonym = f"deleted user {charlie.id}"
    page = get_administrator_browser(gatebell).get(charlie.alert).text
    assert "The volume is full." in page
    assert pseudonym in page
    verified = gatebell.cli("audit", "verify")
    assert verified["intact"], verified
    seal_audit_events(settings_of(gatebell))
    assert gatebell.cli("audit", "verify")["intact"]
    events = get_administrator_browser(gatebell).get(f"{gatebell.url}/admin/audit").text
    assert pseudonym in events


@pytest.mark.long
def test_the_name_and_address_of_an_erased_user_are_free_but_not_the_id(
    gatebell: LiveGatebell, owner: Owner
) -> None:
    erase(gatebell, owner, delete_applications="true")
    name, email = owner.person.username, owner.person.email
    made = gatebell.cli("users", "create", name, "--email", email)
    assert made["id"] > owner.id


@pytest.mark.both_databases
def test_the_id_of_the_newest_account_is_not_reused(gatebell: LiveGatebell) -> None:
    newest = make_user(gatebell, name="newest")
    number = find_user_id(gatebell, newest)
    gatebell.cli("users", "delete", newest.username)
    assert find_user_id(gatebell, make_user(gatebell, name="next")) > number


def owner_of(gatebell: LiveGatebell, client: ClientCredentials) -> str | None:
    with database_of(gatebell) as session:
        owner = select(User.username).join(Application, Application.owner_id == User.id)
        return session.scalar(owner.where(Application.uid == client.client_id))


@pytest.mark.long
def test_an_erasure_needs_a_decision_about_the_users_applications(
    gatebell: LiveGatebell, owner: Owner
) -> None:
    refused = erase(gatebell, owner)
    assert refused.status_code == 400
    assert "transfer" in refused.text
    assert owner_of(gatebell, owner.own) == owner.person.username
    for nobody in (owner.person.username, "nobody-at-all"):
        assert erase(gatebell, owner, applications_to=nobody).status_code in {400, 404, 409}
    heir = alice(gatebell).username
    done = gatebell.cli("users", "delete", owner.person.username, "--applications-to", heir)
    assert done["applications_handed_on"] == 1
    assert owner_of(gatebell, owner.own) == heir


def test_applications_can_be_deleted_with_their_owner(gatebell: LiveGatebell, owner: Owner) -> None:
    done = gatebell.cli("users", "delete", owner.person.username, "--delete-applications")
    assert done["applications_deleted"] == 1
    assert owner_of(gatebell, owner.own) is None


def test_an_administrator_can_delete_an_account_on_a_page(
    gatebell: LiveGatebell, owner: Owner
) -> None:
    path = f"/admin/users/{owner.id}/delete"
    wrong = submit_form_by_field(gatebell, path, "confirmation", confirmation="somebody else")
    assert wrong.status_code == 422
    nobody = submit_form_by_field(
        gatebell, path, "confirmation", confirmation=owner.person.username, heir="nobody-at-all"
    )
    assert nobody.status_code == 422
    assert "nobody-at-all" in nobody.text
    heir = alice(gatebell).username
    done = submit_form_by_field(
        gatebell, path, "confirmation", confirmation=owner.person.username, heir=heir
    )
    assert done.status_code == 302
    assert owner_of(gatebell, owner.own) == heir
    again = get_administrator_browser(gatebell).get(gatebell.url + path)
    assert again.status_code == 404


def test_a_sole_owner_cannot_be_erased(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="owner")
    group = make_project(gatebell, owner).partition("/")[0]
    done = gatebell.run_cli("users", "delete", owner.username)
    assert done.returncode == 1
    assert group in done.stderr
    me = api(
        gatebell,
        get_shared_administrator(gatebell),
        "DELETE",
        str(find_user_id(gatebell, get_shared_administrator(gatebell))),
    )
    assert me.status_code in {400, 409}
    for stranger in (bob(gatebell), alice(gatebell)):
        refused = api(gatebell, stranger, "DELETE", str(find_user_id(gatebell, owner)))
        assert refused.status_code == 403
    give_role(gatebell, group, bob(gatebell), Role.OWNER)
    assert gatebell.cli("users", "delete", owner.username)["pseudonym"]


def test_every_table_that_references_users_is_part_of_the_personal_data() -> None:
    known = {table.model.__tablename__ for table in PERSONAL_DATA}
    pointing = {
        table.name
        for table in Base.metadata.tables.values()
        for key in table.foreign_keys
        if key.column.table.name == "users"
    }
    # A bot belongs to an access token, not to a user.
    assert pointing - known == {"bots", "service_accounts"}


def test_every_column_of_these_tables_is_exported_or_deliberately_omitted() -> None:
    forgotten = {each.name: find_unlisted_columns(each) for each in PERSONAL_DATA}
    assert {name: columns for name, columns in forgotten.items() if columns} == {}
    for table in PERSONAL_DATA:
        columns = {each.key for each in table.model.__table__.columns}
        exported, internal = set(table.exported.split()), set(table.internal.split())
        assert internal <= columns, table.name
        assert all(hasattr(table.model, each) for each in exported), table.name
        assert not exported & internal, table.name


def test_a_new_column_is_detected() -> None:
    sign_ins = next(each for each in PERSONAL_DATA if each.name == "sign_ins")
    fewer = replace(sign_ins, exported=sign_ins.exported.replace(" user_agent", ""))
    assert find_unlisted_columns(fewer) == ("user_agent",)


def test_the_documentation_lists_all_personal_data() -> None:
    document = (ROOT / "docs" / "personal-data.md").read_text(encoding="utf-8")
    for table in PERSONAL_DATA:
        row = f"| `{table.model.__tablename__}` | {table.about} | {table.on_erasure.value} |"
        assert row in document
    assert {table.on_erasure for table in PERSONAL_DATA} == set(ErasureRule)
