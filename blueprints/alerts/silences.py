"""/<project>/-/silences: whose alerts page nobody, and until when."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.abilities import Ability
from domain.accounts.roles import Role
from domain.alerts.handling.alert_detail import get_alert_id
from domain.alerts.listing.queries import LARGEST_IID
from domain.alerts.matching.labels import AlertLabels, labels_of
from domain.audit.events import Actor, EventKind
from domain.database.list_queries import row_id
from domain.errors import InvalidError, QueryError
from domain.projects.views import ProjectView
from domain.silences import flapping
from domain.silences import silences as domain
from domain.silences.choice import matchers_for
from domain.silences.preview import LOOKED_BACK, Preview
from domain.silences.preview import preview as look
from domain.silences.silences import SilenceState
from forms.silence import FlapSettingsForm, SilenceExtensionForm, SilenceForm
from web.access.marks import get_current_user, project_member
from web.alerts.silences import longest_silence, record_flap_settings, record_silence
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.links import page_links
from web.pages.list_query import CURSORS, asked_slice, list_query
from web.services import now, reading

silences = PageBlueprint("silences", __name__, url_prefix="/<names:project_path>/-/silences")


@silences.get("")
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def index(project: ProjectView) -> ResponseReturnValue:
    """List the silences of a state, by default the active ones."""
    given = list_query("state", *CURSORS)
    state = _state(given.get("state", SilenceState.ACTIVE))
    session = db.session()
    found = domain.list_silences(project.id, state, asked_slice(), session=session, now=now())
    return render_template(
        "silences/index.html",
        project=project,
        state=state,
        states=tuple(SilenceState),
        counts=domain.count_by_state(project.id, session=session, now=now()),
        page=page_links(found),
        settings=flapping.get_settings(project.id, session=session),
    )


def _state(word: str) -> SilenceState:
    if word not in set(SilenceState):
        message = f"state is one of {', '.join(SilenceState)}."
        raise QueryError(message, field="state")
    return SilenceState(word)


@silences.route("/new", methods=["GET", "POST"])
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def create(project: ProjectView) -> ResponseReturnValue:
    """Show what a silence would mute, and create it."""
    alert = _alert(project)
    form = SilenceForm(time_zone=get_current_user().time_zone)
    if request.method == "GET" and alert is not None:
        form.matchers.data = "\n".join(map(str, matchers_for(alert.labels)))
    if request.method == "POST" and form.validate() and "preview" not in request.form:
        try:
            made = domain.create_silence(
                project.id,
                form.wanted(now()),
                by=_me(),
                longest=longest_silence(),
                session=db.session(),
                now=now(),
            )
        except InvalidError as error:
            _object(form, error)
        else:
            record_silence(EventKind.SILENCE_CREATED, project.path, made)
            flash("Silence created. Matching alerts are stored and shown, and page nobody.")
            return _to(project, made.id)
    return _form_page(project, form, alert)


def _object(form: SilenceForm, error: InvalidError) -> None:
    form.object_to("duration" if error.field == "ends_at" else error.field, str(error))


def _form_page(
    project: ProjectView, form: SilenceForm, alert: AlertLabels | None
) -> ResponseReturnValue:
    preview = _preview(project, form)
    page = render_template(
        "silences/new.html",
        project=project,
        form=form,
        alert=alert,
        preview=preview,
        days=LOOKED_BACK.days,
    )
    return page, 422 if form.errors else 200


def _preview(project: ProjectView, form: SilenceForm) -> Preview | None:
    """Return what the entered matchers match; their mistakes are shown beside the field."""
    if not form.matchers.data or form.matchers.errors:
        return None
    try:
        matchers = form.read_matchers
    except InvalidError as error:
        _object(form, error)
        return None
    return look(project.id, matchers, session=db.session(), reading=reading(), now=now())


def _alert(project: ProjectView) -> AlertLabels | None:
    """Return the alert that the page was opened from, or None."""
    list_query("alert")
    iid = row_id(request.args, "alert")
    if iid is None or iid > LARGEST_IID:
        return None
    session = db.session()
    alert_id = get_alert_id(project.id, iid, session=session)
    return labels_of([alert_id], session=session, reading=reading()).get(alert_id)


@silences.get("/<int:silence_id>")
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def show(project: ProjectView, silence_id: int) -> ResponseReturnValue:
    """Show a silence and what it mutes."""
    return _page(project, silence_id, SilenceExtensionForm(formdata=None)), 200


def _page(project: ProjectView, silence_id: int, form: SilenceExtensionForm) -> str:
    session = db.session()
    silence = domain.get_silence(project.id, silence_id, session=session)
    return render_template(
        "silences/show.html",
        project=project,
        silence=silence,
        state=silence.state(now()),
        preview=look(project.id, silence.matchers, session=session, reading=reading(), now=now()),
        days=LOOKED_BACK.days,
        form=form,
    )


@silences.post("/<int:silence_id>/extend")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def extend(project: ProjectView, silence_id: int) -> ResponseReturnValue:
    """Give a silence another end."""
    form = SilenceExtensionForm()
    if form.validate():
        try:
            changed = domain.change_silence(
                project.id,
                silence_id,
                form.wanted(now()),
                longest=longest_silence(),
                session=db.session(),
                now=now(),
            )
        except InvalidError as error:
            form.object_to("duration", str(error))
        else:
            record_silence(EventKind.SILENCE_CHANGED, project.path, changed)
            flash("The silence has a new end.")
            return _to(project, silence_id)
    return _page(project, silence_id, form), 422


@silences.post("/<int:silence_id>/expire")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def expire(project: ProjectView, silence_id: int) -> ResponseReturnValue:
    """End a silence now."""
    try:
        ended = domain.expire_silence(
            project.id, silence_id, by=_me(), session=db.session(), now=now()
        )
    except InvalidError as error:
        flash(str(error), "error")
    else:
        record_silence(EventKind.SILENCE_EXPIRED, project.path, ended)
        flash("The silence has ended. Open alerts that matched it page again.")
    return _to(project, silence_id)


@silences.get("/flapping")
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def show_flapping(project: ProjectView) -> ResponseReturnValue:
    """Show the settings of flap detection."""
    settings = flapping.get_settings(project.id, session=db.session())
    return _flapping_page(project, FlapSettingsForm.of(settings))


@silences.post("/flapping")
@project_member(at_least=Role.MAINTAINER)
def change_flapping(project: ProjectView) -> ResponseReturnValue:
    """Change the settings of flap detection."""
    form = FlapSettingsForm()
    if not form.validate():
        return _flapping_page(project, form)
    stored = flapping.store_settings(project.id, form.wanted, session=db.session())
    record_flap_settings(project.path, stored)
    flash("Settings saved.")
    return redirect(url_for("silences.show_flapping", project_path=project.path))


def _flapping_page(project: ProjectView, form: FlapSettingsForm) -> ResponseReturnValue:
    page = render_template("silences/flapping.html", project=project, form=form)
    return page, 422 if form.errors else 200


def _me() -> Actor:
    return Actor(id=get_current_user().id, name=get_current_user().username)


def _to(project: ProjectView, silence_id: int) -> ResponseReturnValue:
    return redirect(url_for("silences.show", project_path=project.path, silence_id=silence_id))
