"""Pages around lists of alerts that only exist after something was done."""

from sqlalchemy import func, select

from models import AlertBatch
from tests.support.accounts.people import Person, database_of, signed_in
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit


def alert_pages(gatebell: LiveGatebell, owner: Person, project: str, name: str) -> list[str]:
    """Change an alert and save a filter; return the pages that show it."""
    browser = signed_in(gatebell, owner)
    path = f"/{project}/-/alerts?status=all&search=x"
    page = browser.get(gatebell.url + path)
    submit(browser, page, form_to(page, "/alerts/status"), iid="1", status="acknowledged")
    submit(browser, page, form_to(page, "/alerts/filters"), name=name[:100], shared="yes")
    with database_of(gatebell) as session:
        batch = session.scalar(select(func.max(AlertBatch.id)))
    return [f"/-/alert_changes/{batch}", path]
