"""The page /admin/audit: the audit log."""

from flask import render_template, request
from flask.typing import ResponseReturnValue

from blueprints.admin.event_files import event_file
from domain.audit.log import EventView, page_of_events
from domain.core.database.paging import Page
from forms.audit import AuditFilterForm
from web.access.decorators import administrator, administrator_afresh
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.list_query import CURSORS, asked_slice, list_query, page_links

audit = PageBlueprint("audit", __name__, url_prefix="/admin/audit")
_FILTERS = ("kind", "actor", "user", "target", "address", "since", "until")


@audit.get("")
@administrator
def index() -> ResponseReturnValue:
    """List the events that match the filters, newest first."""
    list_query(*_FILTERS, *CURSORS)
    form = AuditFilterForm()
    part = asked_slice()
    if not form.validate():
        return _page(form, Page(items=())), 400
    return _page(form, page_of_events(form.wanted(), part, session=db.session()))


@audit.get("/export.<any(csv, jsonl):extension>")
@administrator_afresh.but(is_heavy=True)
def download(extension: str) -> ResponseReturnValue:
    """Return the filtered events as a file."""
    list_query(*_FILTERS)
    form = AuditFilterForm()
    if not form.validate():
        return _page(form, Page(items=())), 400
    return event_file(form.wanted(), kind=extension)


def _page(form: AuditFilterForm, found: Page[EventView]) -> str:
    return render_template(
        "audit/index.html",
        form=form,
        page=page_links(found),
        given={name: request.args[name] for name in _FILTERS if request.args.get(name)},
        is_narrowed=any(field.data for field in form),
    )
