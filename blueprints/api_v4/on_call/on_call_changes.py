"""/api/v4/projects/:id/on_call/schedules/:id/{overrides,swaps}: changes of shifts."""

from flask import Blueprint

from blueprints.api_v4.on_call.on_call_schedules import AT, ONE
from domain.database.paging import LARGEST_ID
from domain.oauth.presented_tokens.bearer import Bearer
from domain.on_call import notices, overrides, swaps
from domain.on_call.change_permissions import Changer
from domain.on_call.schedules import ScheduleView, get_schedule
from domain.projects.views import ProjectView
from domain.types.base import Found
from web.api.operations import operation
from web.api.schemas.on_call.on_call_schedules import (
    OnCallChangeQuery,
    OnCallOverride,
    OnCallOverrideBody,
    OnCallSwap,
    OnCallSwapBody,
)
from web.extensions import db
from web.on_call.audit import record_override_change, record_swap_change
from web.on_call.notices import tell_users
from web.services import now

on_call_overrides = Blueprint("on_call_overrides", __name__, url_prefix=f"{AT}{ONE}/overrides")
on_call_swaps = Blueprint("on_call_swaps", __name__, url_prefix=f"{AT}{ONE}/swaps")
_OVERRIDE = f"/<int(max={LARGEST_ID}):override_id>"
_SWAP = f"/<int(max={LARGEST_ID}):swap_id>"


@on_call_overrides.get("", endpoint="index")
@operation("on_call_overrides.index", query=OnCallChangeQuery, returns=OnCallOverride)
def list_overrides(
    project: ProjectView, schedule_id: int, query: OnCallChangeQuery
) -> Found[OnCallOverride]:
    """List the overrides of a schedule, those that are over as well."""
    schedule = _schedule(project, schedule_id)
    found = overrides.list_overrides(schedule.id, query.part, session=db.session())
    return Found.of(found, OnCallOverride.of)


@on_call_overrides.post("", endpoint="create")
@operation("on_call_overrides.create", body=OnCallOverrideBody, returns=OnCallOverride, status=201)
def create_override(
    project: ProjectView, schedule_id: int, body: OnCallOverrideBody, bearer: Bearer
) -> OnCallOverride:
    """Put one user on call for a time, instead of everybody else.

    Members without the Maintainer role can do it for shifts of their own, and where nobody is on
    call.
    """
    schedule = _schedule(project, schedule_id)
    made = overrides.create_override(
        project.namespace,
        schedule.id,
        body.override,
        by=_changer(project, bearer),
        session=db.session(),
        now=now(),
    )
    record_override_change("created", project, schedule, made)
    tell_users(notices.tell_of_override, made, project, schedule, by_id=bearer.user_id)
    return OnCallOverride.of(made)


@on_call_overrides.get(_OVERRIDE, endpoint="show")
@operation("on_call_overrides.show", returns=OnCallOverride)
def show_override(project: ProjectView, schedule_id: int, override_id: int) -> OnCallOverride:
    """Show an override."""
    schedule = _schedule(project, schedule_id)
    return OnCallOverride.of(overrides.get_override(schedule.id, override_id, session=db.session()))


@on_call_overrides.delete(_OVERRIDE, endpoint="delete")
@operation("on_call_overrides.delete")
def delete_override(
    project: ProjectView, schedule_id: int, override_id: int, bearer: Bearer
) -> None:
    """Delete an override; one that has begun ends now."""
    schedule = _schedule(project, schedule_id)
    ended = overrides.end_override(
        schedule.id,
        override_id,
        by=_changer(project, bearer),
        session=db.session(),
        now=now(),
    )
    record_override_change("deleted", project, schedule, ended)
    tell_users(notices.tell_of_ended_override, ended, project, schedule, by_id=bearer.user_id)


@on_call_swaps.get("", endpoint="index")
@operation("on_call_swaps.index", query=OnCallChangeQuery, returns=OnCallSwap)
def list_swaps(
    project: ProjectView, schedule_id: int, query: OnCallChangeQuery
) -> Found[OnCallSwap]:
    """List the swaps of a schedule, including past ones."""
    schedule = _schedule(project, schedule_id)
    found = swaps.list_swaps(schedule.id, query.part, session=db.session())
    return Found.of(found, OnCallSwap.of)


@on_call_swaps.post("", endpoint="create")
@operation("on_call_swaps.create", body=OnCallSwapBody, returns=OnCallSwap, status=201)
def create_swap(
    project: ProjectView, schedule_id: int, body: OnCallSwapBody, bearer: Bearer
) -> OnCallSwap:
    """Swap two shifts of two users.

    Members without the Maintainer role can do it if one of the shifts is their own.
    """
    schedule = _schedule(project, schedule_id)
    made = swaps.create_swap(
        project.namespace,
        schedule.id,
        body.swap,
        by=_changer(project, bearer),
        session=db.session(),
        now=now(),
    )
    record_swap_change("created", project, schedule, made)
    tell_users(notices.tell_of_swap, made, project, schedule, by_id=bearer.user_id)
    return OnCallSwap.of(made)


@on_call_swaps.get(_SWAP, endpoint="show")
@operation("on_call_swaps.show", returns=OnCallSwap)
def show_swap(project: ProjectView, schedule_id: int, swap_id: int) -> OnCallSwap:
    """Show a swap."""
    schedule = _schedule(project, schedule_id)
    return OnCallSwap.of(swaps.get_swap(schedule.id, swap_id, session=db.session()))


@on_call_swaps.delete(_SWAP, endpoint="delete")
@operation("on_call_swaps.delete")
def delete_swap(project: ProjectView, schedule_id: int, swap_id: int, bearer: Bearer) -> None:
    """Undo the remaining part of a swap."""
    schedule = _schedule(project, schedule_id)
    undone = swaps.undo_swap(
        schedule.id, swap_id, by=_changer(project, bearer), session=db.session(), now=now()
    )
    record_swap_change("deleted", project, schedule, undone)
    tell_users(notices.tell_of_undone_swap, undone, project, schedule, by_id=bearer.user_id)


def _schedule(project: ProjectView, schedule_id: int) -> ScheduleView:
    return get_schedule(project.id, schedule_id, session=db.session())


def _changer(project: ProjectView, bearer: Bearer) -> Changer:
    return Changer(user_id=bearer.user_id, may_change_all=project.can_maintain)
