"""The /admin/audit page: the audit log."""

from flask import render_template, request
from flask.typing import ResponseReturnValue

from blueprints.admin.audit_export import build_audit_export
from domain.audit.log import EventView, fetch_event_page
from domain.core.database.pagination import KeysetPage
from forms.audit import AuditFilterForm
from web.access.decorators import (
    administrator_required,
    get_current_user,
    recent_administrator_required,
)
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    build_page_links,
    get_list_query,
    get_requested_keyset_range,
)

audit = PageBlueprint("audit", __name__, url_prefix="/admin/audit")
_FILTER_PARAMETERS = ("kind", "actor", "user", "target", "address", "since", "until")


@audit.get("")
@administrator_required
def index() -> ResponseReturnValue:
    """List the events that match the filters, newest first."""
    get_list_query(*_FILTER_PARAMETERS, *CURSOR_PARAMETERS)
    form = AuditFilterForm(get_current_user().time_zone)
    part = get_requested_keyset_range()
    if not form.validate():
        return _render_page(form, KeysetPage(items=())), 400
    return _render_page(form, fetch_event_page(form.build_filter(), part, session=db.session()))


@audit.get("/export.<any(csv, jsonl):extension>")
@recent_administrator_required.with_changes(is_heavy=True)
def download(extension: str) -> ResponseReturnValue:
    """Return the filtered events as a file."""
    get_list_query(*_FILTER_PARAMETERS)
    form = AuditFilterForm(get_current_user().time_zone)
    if not form.validate():
        return _render_page(form, KeysetPage(items=())), 400
    return build_audit_export(form.build_filter(), kind=extension)


def _render_page(form: AuditFilterForm, event_page: KeysetPage[EventView]) -> str:
    return render_template(
        "audit/index.html",
        form=form,
        page=build_page_links(event_page),
        given={name: request.args[name] for name in _FILTER_PARAMETERS if request.args.get(name)},
        is_narrowed=any(field.data for field in form),
    )
