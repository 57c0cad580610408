"""Pages for the silences of projects and groups, and for flap detection."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.alerts.handling.alert_detail import get_alert_id
from domain.alerts.listing.queries import LARGEST_IID
from domain.alerts.matching.labels import AlertLabels, labels_of
from domain.alerts.matching.parser import LONGEST_TEXT
from domain.core.database.paging import row_id, words
from domain.core.errors import InvalidError, QueryError
from domain.paging.silences import actions
from domain.paging.silences.actions import LOOKED_BACK, matchers_for
from domain.paging.silences.types import (
    FlapSettings,
    FlapSettingsChange,
    PreviewQuery,
    SilencePreview,
    SilenceState,
)
from domain.projects.views import GroupView, Holder, ProjectView
from forms.silences import FlapSettingsForm, SilenceExtensionForm, SilenceForm
from web.access.decorators import get_current_user, permitted
from web.extensions import db
from web.http.endpoints import NamespaceBlueprint, PageBlueprint
from web.http.work import work
from web.pages.form_errors import refusals_shown
from web.pages.form_pages import form_page
from web.pages.list_query import CURSORS, asked_slice, list_query, page_links
from web.services import reading

silences = NamespaceBlueprint("silences", __name__, below="silences")
flap_settings = PageBlueprint(
    "flap_settings", __name__, url_prefix="/<names:project_path>/-/silences/flapping"
)


@silences.get("")
@permitted("silences.index")
def index(holder: Holder) -> ResponseReturnValue:
    """List the silences in a state, by default the active silences."""
    given = list_query("state", *CURSORS)
    state = _state(given.get("state", SilenceState.ACTIVE))
    return render_template(
        "silences/index.html",
        holder=holder,
        state=state,
        states=tuple(SilenceState),
        counts=actions.count_by_state(work(), holder),
        page=page_links(actions.show_page(work(), holder, state, asked_slice())),
        settings=_flap_settings(holder),
        above=actions.show_above(work(), holder) if state is SilenceState.ACTIVE else (),
    )


def _flap_settings(holder: Holder) -> FlapSettings | None:
    return None if isinstance(holder, GroupView) else actions.show_flap_settings(work(), holder)


def _state(word: str) -> SilenceState:
    if word not in set(SilenceState):
        raise QueryError(f"state is one of {', '.join(SilenceState)}.", field="state")
    return SilenceState(word)


@silences.route("/new", methods=["GET", "POST"])
@permitted("silences.create")
def create(holder: Holder) -> ResponseReturnValue:
    """Show which alerts a silence would mute, and create it."""
    alert = _alert(holder)
    form = SilenceForm(time_zone=get_current_user().time_zone)
    if request.method == "GET":
        of_alert = "\n".join(map(str, matchers_for(alert.labels))) if alert else ""
        form.matchers.data = of_alert or words(request.args, "matchers", most=LONGEST_TEXT)
    if request.method == "POST" and "preview" in request.form:
        form.validate()
    elif request.method == "POST":
        made = form.carry_out(lambda: actions.create_silence(work(), holder, form.silence()))
        if made is not None:
            flash("Silence created. Matching alerts are stored and shown, but page nobody.")
            return _to(holder, made.id)
    return form_page(
        "silences/new.html",
        form,
        holder=holder,
        alert=alert,
        preview=_preview(holder, form),
        days=LOOKED_BACK.days,
    )


def _preview(holder: Holder, form: SilenceForm) -> SilencePreview | None:
    """Return a preview of the entered matchers, or add their errors to the form."""
    if not form.matchers.data or form.matchers.errors:
        return None
    try:
        return actions.preview_silence(work(), holder, form.read(PreviewQuery))
    except InvalidError as error:
        form.object(error)
        return None


def _alert(holder: Holder) -> AlertLabels | None:
    """Return the alert that the page was opened from, or None."""
    list_query("alert", "matchers")
    iid = row_id(request.args, "alert")
    if iid is None or iid > LARGEST_IID or holder.is_group:
        return None
    session = db.session()
    alert_id = get_alert_id(holder.id, iid, session=session)
    return labels_of([alert_id], session=session, reading=reading()).get(alert_id)


@silences.get("/<int:silence_id>")
@permitted("silences.show")
def show(holder: Holder, silence_id: int) -> ResponseReturnValue:
    """Show a silence and the alerts that it mutes."""
    return _page(holder, silence_id, SilenceExtensionForm(formdata=None)), 200


def _page(holder: Holder, silence_id: int, form: SilenceExtensionForm) -> str:
    silence = actions.show_silence(work(), holder, silence_id)
    query = PreviewQuery(matchers=silence.matchers)
    return render_template(
        "silences/show.html",
        holder=holder,
        silence=silence,
        preview=actions.preview_silence(work(), holder, query),
        days=LOOKED_BACK.days,
        form=form,
    )


@silences.post("/<int:silence_id>/extend")
@permitted("silences.edit")
def extend(holder: Holder, silence_id: int) -> ResponseReturnValue:
    """Change the end of a silence."""
    form = SilenceExtensionForm()
    changed = form.carry_out(
        lambda: actions.change_silence(work(), holder, silence_id, form.change())
    )
    if changed is None:
        return _page(holder, silence_id, form), 422
    flash("The end of the silence was changed.")
    return _to(holder, silence_id)


@silences.post("/<int:silence_id>/expire")
@permitted("silences.delete")
def expire(holder: Holder, silence_id: int) -> ResponseReturnValue:
    """End a silence now."""
    with refusals_shown(InvalidError):
        actions.expire_silence(work(), holder, silence_id)
        flash("The silence has ended. Open alerts that matched it page again.")
    return _to(holder, silence_id)


def _to(holder: Holder, silence_id: int) -> ResponseReturnValue:
    return redirect(url_for("silences.show", **holder.url_values, silence_id=silence_id))


@flap_settings.get("", endpoint="show")
@permitted("flap_settings.show")
def show_flapping(project: ProjectView) -> ResponseReturnValue:
    """Show the settings of flap detection."""
    settings = actions.show_flap_settings(work(), project)
    return _flapping_page(project, FlapSettingsForm(obj=settings))


@flap_settings.post("", endpoint="change")
@permitted("flap_settings.edit")
def change_flapping(project: ProjectView) -> ResponseReturnValue:
    """Change the settings of flap detection."""
    form = FlapSettingsForm()
    stored = form.carry_out(
        lambda: actions.change_flap_settings(work(), project, form.read(FlapSettingsChange))
    )
    if stored is None:
        return _flapping_page(project, form)
    flash("Settings saved.")
    return redirect(url_for("flap_settings.show", project_path=project.path))


def _flapping_page(project: ProjectView, form: FlapSettingsForm) -> ResponseReturnValue:
    return form_page("silences/flapping.html", form, project=project)
