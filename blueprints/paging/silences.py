"""Pages for the silences of projects and groups, and for flap detection."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.alerts.handling.alert_detail import get_alert_id
from domain.alerts.listing.queries import MAX_IID
from domain.alerts.matching.alert_labels import AlertLabels, find_alert_labels
from domain.alerts.matching.matcher_parser import MAX_MATCHERS_TEXT_LENGTH
from domain.core.database.pagination import get_row_id, get_search_text
from domain.core.errors import InvalidError, QueryError
from domain.paging.silences import actions
from domain.paging.silences.actions import PREVIEW_PERIOD, build_matchers
from domain.paging.silences.types import (
    FlapSettings,
    FlapSettingsChange,
    PreviewQuery,
    SilencePreview,
    SilenceState,
)
from domain.projects.views import GroupView, ProjectOrGroup, ProjectView
from forms.silences import FlapSettingsForm, SilenceExtensionForm, SilenceForm
from web.access.decorators import get_current_user, permission_required
from web.extensions import db
from web.http.endpoints import NamespaceBlueprint, PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_errors import show_errors_on_next_page
from web.pages.form_pages import render_form_page
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    build_page_links,
    get_list_query,
    get_requested_keyset_range,
)
from web.services import get_parser_settings

silences = NamespaceBlueprint("silences", __name__, below="silences")
flap_settings = PageBlueprint(
    "flap_settings", __name__, url_prefix="/<names:project_path>/-/silences/flapping"
)


@silences.get("")
@permission_required("silences.index")
def index(holder: ProjectOrGroup) -> ResponseReturnValue:
    """List the silences in a given state. The default is the active silences."""
    given = get_list_query("state", *CURSOR_PARAMETERS)
    state = _parse_state(given.get("state", SilenceState.ACTIVE))
    return render_template(
        "silences/index.html",
        holder=holder,
        state=state,
        states=tuple(SilenceState),
        counts=actions.count_silences_by_state(get_unit_of_work(), holder),
        page=build_page_links(
            actions.fetch_silence_page(
                get_unit_of_work(), holder, state, get_requested_keyset_range()
            )
        ),
        settings=_find_flap_settings(holder),
        above=actions.list_inherited_silences(get_unit_of_work(), holder)
        if state is SilenceState.ACTIVE
        else (),
    )


def _find_flap_settings(holder: ProjectOrGroup) -> FlapSettings | None:
    return (
        None
        if isinstance(holder, GroupView)
        else actions.show_flap_settings(get_unit_of_work(), holder)
    )


def _parse_state(word: str) -> SilenceState:
    if word not in set(SilenceState):
        raise QueryError(f"`state` must be one of {', '.join(SilenceState)}.", field="state")
    return SilenceState(word)


@silences.route("/new", methods=["GET", "POST"])
@permission_required("silences.create")
def create(holder: ProjectOrGroup) -> ResponseReturnValue:
    """Preview the alerts that a silence would mute, or create the silence."""
    alert = _find_alert_labels(holder)
    form = SilenceForm(time_zone=get_current_user().time_zone)
    if request.method == "GET":
        of_alert = "\n".join(map(str, build_matchers(alert.labels))) if alert else ""
        form.matchers.data = of_alert or get_search_text(
            request.args, "matchers", maximum=MAX_MATCHERS_TEXT_LENGTH
        )
    if request.method == "POST" and "preview" in request.form:
        form.validate()
    elif request.method == "POST":
        work = get_unit_of_work()
        made = form.run_if_valid(lambda: actions.create_silence(work, holder, form.build_silence()))
        if made is not None:
            flash("Silence created. Matching alerts are stored and shown, but do not page anyone.")
            return _redirect_to_silence(holder, made.id)
    return render_form_page(
        "silences/new.html",
        form,
        holder=holder,
        alert=alert,
        preview=_build_preview(holder, form),
        days=PREVIEW_PERIOD.days,
    )


def _build_preview(holder: ProjectOrGroup, form: SilenceForm) -> SilencePreview | None:
    """Return a preview of the entered matchers, or add their errors to the form."""
    if not form.matchers.data or form.matchers.errors:
        return None
    try:
        return actions.preview_silence(
            get_unit_of_work(), holder, form.build_entered_body(PreviewQuery)
        )
    except InvalidError as error:
        form.show_domain_error(error)
        return None


def _find_alert_labels(holder: ProjectOrGroup) -> AlertLabels | None:
    """Return the labels of the alert in the query, or None if the query contains no alert."""
    get_list_query("alert", "matchers")
    iid = get_row_id(request.args, "alert")
    if iid is None or iid > MAX_IID or holder.is_group:
        return None
    session = db.session()
    alert_id = get_alert_id(holder.id, iid, session=session)
    return find_alert_labels([alert_id], session=session, reading=get_parser_settings()).get(
        alert_id
    )


@silences.get("/<int:silence_id>")
@permission_required("silences.show")
def show(holder: ProjectOrGroup, silence_id: int) -> ResponseReturnValue:
    """Show a silence and the alerts that it mutes."""
    return _render_page(holder, silence_id, SilenceExtensionForm(formdata=None)), 200


def _render_page(holder: ProjectOrGroup, silence_id: int, form: SilenceExtensionForm) -> str:
    silence = actions.show_silence(get_unit_of_work(), holder, silence_id)
    query = PreviewQuery(matchers=silence.matchers)
    return render_template(
        "silences/show.html",
        holder=holder,
        silence=silence,
        preview=actions.preview_silence(get_unit_of_work(), holder, query),
        days=PREVIEW_PERIOD.days,
        form=form,
    )


@silences.post("/<int:silence_id>/extend")
@permission_required("silences.edit")
def extend(holder: ProjectOrGroup, silence_id: int) -> ResponseReturnValue:
    """Change the end of a silence."""
    form = SilenceExtensionForm()
    changed = form.run_if_valid(
        lambda: actions.change_silence(get_unit_of_work(), holder, silence_id, form.build_change())
    )
    if changed is None:
        return _render_page(holder, silence_id, form), 422
    flash("The end of the silence was changed.")
    return _redirect_to_silence(holder, silence_id)


@silences.post("/<int:silence_id>/expire")
@permission_required("silences.delete")
def expire(holder: ProjectOrGroup, silence_id: int) -> ResponseReturnValue:
    """End a silence immediately."""
    with show_errors_on_next_page(InvalidError):
        actions.expire_silence(get_unit_of_work(), holder, silence_id)
        flash("The silence has ended. Open alerts can page again.")
    return _redirect_to_silence(holder, silence_id)


def _redirect_to_silence(holder: ProjectOrGroup, silence_id: int) -> ResponseReturnValue:
    return redirect(url_for("silences.show", **holder.url_values, silence_id=silence_id))


@flap_settings.get("", endpoint="show")
@permission_required("flap_settings.show")
def show_flapping(project: ProjectView) -> ResponseReturnValue:
    """Show the settings of flap detection."""
    settings = actions.show_flap_settings(get_unit_of_work(), project)
    return _render_flapping_page(project, FlapSettingsForm(obj=settings))


@flap_settings.post("", endpoint="change")
@permission_required("flap_settings.edit")
def change_flapping(project: ProjectView) -> ResponseReturnValue:
    """Change the settings of flap detection."""
    form = FlapSettingsForm()
    stored = form.run_if_valid(
        lambda: actions.change_flap_settings(
            get_unit_of_work(), project, form.build_entered_body(FlapSettingsChange)
        )
    )
    if stored is None:
        return _render_flapping_page(project, form)
    flash("Settings saved.")
    return redirect(url_for("flap_settings.show", project_path=project.path))


def _render_flapping_page(project: ProjectView, form: FlapSettingsForm) -> ResponseReturnValue:
    return render_form_page("silences/flapping.html", form, project=project)
