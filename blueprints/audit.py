"""The administration's page of audit events: who did what, when, from where."""

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from domain.audit.trail import EventView, page_of_events
from domain.paging import Page, Slice, read_cursor
from forms.audit import AuditFilterForm
from web.access import administrator
from web.extensions import db
from web.pages import page_links
from web.services import settings

audit = Blueprint("audit", __name__, url_prefix="/admin/audit")


@audit.get("")
@administrator
def index() -> ResponseReturnValue:
    """List the events, the newest first, narrowed down by the form."""
    form = AuditFilterForm()
    part = Slice(
        size=settings().page_size,
        before=read_cursor(request.args.get("before")),
        after=read_cursor(request.args.get("after")),
    )
    if not form.validate():
        return _page(form, Page(items=())), 422
    return _page(form, page_of_events(form.wanted(), part, session=db.session()))


def _page(form: AuditFilterForm, found: Page[EventView]) -> str:
    return render_template(
        "audit/index.html",
        form=form,
        page=page_links(found),
        is_narrowed=any(field.data for field in form),
    )
