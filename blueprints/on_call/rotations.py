"""Pages that add, change and end the rotations of an on-call schedule."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.access.roles import Role
from domain.errors import InvalidError, NotFoundError
from domain.on_call.people import people
from domain.on_call.plans import RotationPlan
from domain.on_call.schedules import ScheduleView, get_schedule, put_rotation, remove_rotation
from domain.projects.views import ProjectView
from forms.on_call import RotationForm
from web.access.marks import get_current_user, project_member
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.on_call.schedule_changes import follow_change
from web.on_call.schedule_page import names_to_choose
from web.services import now

on_call_rotations = PageBlueprint(
    "on_call_rotations",
    __name__,
    url_prefix="/<names:project_path>/-/on_call/schedules/<int:schedule_id>/rotations",
)
#: Errors name the whole list of rotations: beside the users is where most of them belong.
_FIELDS = {"rotations": "users"}


@on_call_rotations.route("/new", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def new(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """Add a rotation, above the others."""
    schedule = get_schedule(project.id, schedule_id, session=db.session())
    form = RotationForm(users=_first_user(project, schedule))
    if form.validate_on_submit() and _put(project, schedule, form, None):
        flash("Rotation added.")
        return _to_schedule(project, schedule_id)
    return _form_page(project, schedule, form, None)


@on_call_rotations.route("/<int:rotation_id>/edit", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def edit(project: ProjectView, schedule_id: int, rotation_id: int) -> ResponseReturnValue:
    """Change a rotation from now on; past shifts stay as they were."""
    schedule = get_schedule(project.id, schedule_id, session=db.session())
    rotation = _rotation(schedule, rotation_id)
    named = people(rotation.user_ids, session=db.session())
    form = RotationForm.of(rotation, [named[each].username for each in rotation.user_ids])
    if form.validate_on_submit() and _put(project, schedule, form, rotation_id):
        flash("Rotation saved. It applies from now on; past shifts do not change.")
        return _to_schedule(project, schedule_id)
    return _form_page(project, schedule, form, rotation)


@on_call_rotations.post("/<int:rotation_id>/delete")
@project_member(at_least=Role.MAINTAINER)
def delete(project: ProjectView, schedule_id: int, rotation_id: int) -> ResponseReturnValue:
    """End a rotation; its past shifts stay as they were."""
    before = get_schedule(project.id, schedule_id, session=db.session())
    try:
        after = remove_rotation(
            project.namespace, schedule_id, rotation_id, session=db.session(), now=now()
        )
    except InvalidError as error:
        flash(str(error), "error")
        return _to_schedule(project, schedule_id)
    follow_change(project, before, after, by_id=get_current_user().id)
    flash("Rotation removed.")
    return _to_schedule(project, schedule_id)


def _first_user(project: ProjectView, schedule: ScheduleView) -> str | None:
    """Return who most likely begins the first rotation: whoever adds it."""
    me = get_current_user().username
    return me if not schedule.rotations and me in names_to_choose(project) else None


def _put(
    project: ProjectView, schedule: ScheduleView, form: RotationForm, replaced: int | None
) -> bool:
    """Store the posted rotation, or show what is wrong with it and return False."""
    try:
        after = put_rotation(
            project.namespace,
            schedule.id,
            form.rotation(replaces=replaced),
            session=db.session(),
            now=now(),
        )
    except InvalidError as error:
        form.object_to(_FIELDS.get(error.field, error.field), str(error))
        return False
    follow_change(project, schedule, after, by_id=get_current_user().id)
    return True


def _rotation(schedule: ScheduleView, rotation_id: int) -> RotationPlan:
    found = next((each for each in schedule.rotations if each.id == rotation_id), None)
    if found is None:
        message = "This rotation was changed or removed in the meantime. Check its schedule."
        raise NotFoundError(message)
    return found


def _to_schedule(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    return redirect(
        url_for("on_call_schedules.show", project_path=project.path, schedule_id=schedule_id)
    )


def _form_page(
    project: ProjectView,
    schedule: ScheduleView,
    form: RotationForm,
    rotation: RotationPlan | None,
) -> ResponseReturnValue:
    page = render_template(
        "on_call/rotation_form.html",
        project=project,
        schedule=schedule,
        form=form,
        rotation=rotation,
        names=names_to_choose(project),
    )
    return page, 422 if form.errors else 200
