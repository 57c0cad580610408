"""Pages of the administration: opens them, submits forms and reads stored events and settings."""

import re
from functools import cache
from html import unescape
from typing import Any
from urllib.parse import urljoin

import requests
from sqlalchemy import delete, select

from domain.accounts.users import get_user
from models import AuditEvent, InstanceSetting
from tests.support.accounts.people import Person, database_of, make_user, now, signed_in
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit


@cache
def get_shared_administrator(gatebell: LiveGatebell) -> Person:
    """Return an administrator that all tests share, so do not change the account."""
    return make_user(gatebell, name="root", admin=True)


@cache
def get_administrator_browser(gatebell: LiveGatebell) -> requests.Session:
    """Return the only browser of the administrator, because some messages appear only once."""
    return signed_in(gatebell, get_shared_administrator(gatebell))


def find_user_id(gatebell: LiveGatebell, person: Person) -> int:
    with database_of(gatebell) as session:
        return get_user(person.username, session=session).id


def submit_form_by_ending(
    gatebell: LiveGatebell, path: str, ending: str, /, **values: str | None
) -> Any:
    """Open a page as the administrator and submit the form whose URL ends like this."""
    browser = get_administrator_browser(gatebell)
    page = browser.get(gatebell.url + path)
    return submit(browser, page, form_to(page, ending), **values)


def submit_form_by_field(
    gatebell: LiveGatebell, path: str, name: str, /, **values: Any
) -> requests.Response:
    """Open a page as the administrator and submit the form with this field."""
    browser = get_administrator_browser(gatebell)
    page = browser.get(gatebell.url + path)
    return submit(browser, page, form_with(page, name), **values)


def read_redirected_page(gatebell: LiveGatebell, answer: requests.Response) -> str:
    """Return the text of the page that a response redirects to."""
    assert answer.status_code == 302, answer.text
    found = get_administrator_browser(gatebell).get(urljoin(answer.url, answer.headers["Location"]))
    assert found.status_code == 200
    return found.text


def find_only_group(page: str, pattern: str) -> str:
    """Return the captured text of the only match of a pattern in a page."""
    found = re.search(pattern, page)
    assert found, f"{pattern} is not in:\n{page}"
    return unescape(found[1])


def find_last_event(gatebell: LiveGatebell, subject: str) -> AuditEvent:
    """Return the last event about a subject."""
    statement = select(AuditEvent).where(AuditEvent.subject == subject)
    with database_of(gatebell) as session:
        found = session.scalars(statement.order_by(AuditEvent.id.desc())).first()
        assert found is not None, f"nothing was written down about {subject}"
        session.expunge(found)
        return found


def read_stored_settings(gatebell: LiveGatebell) -> dict[str, str]:
    """Return the settings that were changed while the service runs."""
    with database_of(gatebell) as session:
        return {row.name: row.value for row in session.scalars(select(InstanceSetting))}


def store_setting(gatebell: LiveGatebell, name: str, value: str) -> None:
    """Change a setting in the database, as a concurrent request would."""
    with database_of(gatebell) as session:
        session.add(InstanceSetting(name=name, value=value, updated_at=now()))


def forget_settings(gatebell: LiveGatebell) -> None:
    """Reset all settings to their values at startup."""
    with database_of(gatebell) as session:
        session.execute(delete(InstanceSetting))
