"""API resources that consist only of actions, and the URLs of the actions.

Resources with custom views, such as downloads, have their own modules in this package.
"""

from http import HTTPStatus

from domain.accounts.identity_providers import actions as identity_provider_actions
from domain.alerts.listing.queries import MAX_IID
from domain.ci_cd import deployment_actions, environment_actions, release_actions, status_actions
from domain.core.database.pagination import MAX_ID
from domain.delivery.audit_streams import actions as audit_stream_actions
from domain.delivery.webhooks import actions as webhook_actions
from domain.heartbeats import actions as heartbeat_actions
from domain.incidents import actions as incident_actions
from domain.incidents import note_actions, rule_actions
from domain.incidents.timelines import actions as timeline_actions
from domain.oauth.applications import actions as application_actions
from domain.paging.contacts import actions as contact_actions
from domain.paging.contacts import rule_actions as contact_rule_actions
from domain.paging.escalations import actions as escalation_actions
from domain.paging.maintenance_windows import actions as maintenance_window_actions
from domain.paging.on_call import actions as on_call_actions
from domain.paging.on_call import calendar_feeds, my_on_call, overrides_and_swaps, swap_requests
from domain.paging.on_call.absences import actions as absence_actions
from domain.paging.on_call.absences import conflicts
from domain.paging.silences import actions as silence_actions
from domain.projects import invitation_actions, member_actions
from domain.projects import member_roles as role_actions
from domain.reports import actions as report_actions
from web.access.api_limits import RateLimitGroup
from web.api.openapi.view_descriptions import declare_error_statuses
from web.api.operations import ResourceBlueprint

_PROJECT_PATH = "/projects/<path:reference>"
_NAMESPACE_PATH = "/<any(projects, groups):kind>/<path:reference>"


def _build_id_path(name: str, largest: int = MAX_ID) -> str:
    """Return the URL rule of a resource that is identified by a number.

    The URL converter rejects numbers above `largest`.
    """
    return f"/<int(max={largest}):{name}>"


def _build_resource_blueprint(place: str, name: str) -> ResourceBlueprint:
    """Return a blueprint for the URL path `place` followed by the resource name."""
    return ResourceBlueprint(name, __name__, url_prefix=f"{place}/{name}")


# Contacts and notification channels.
contacts = _build_resource_blueprint("/user", "contacts")
contacts.bind_crud_actions(contact_actions, _build_id_path("contact_id"))
contacts.bind_action(
    "POST", f"{_build_id_path('contact_id')}/confirm", contact_actions.confirm_contact, status=200
)
contacts.bind_action(
    "POST", f"{_build_id_path('contact_id')}/send_code", contact_actions.send_code, status=200
)
contacts.bind_action(
    "POST", f"{_build_id_path('contact_id')}/test", contact_actions.send_contact_test, status=200
)
contacts.bind_action("GET", "/preferences", contact_actions.show_preferences)
contacts.bind_action("PUT", "/preferences", contact_actions.change_preferences)

contact_rules = ResourceBlueprint("contact_rules", __name__, url_prefix="/user/contacts/rules")
contact_rules.bind_crud_actions(contact_rule_actions, _build_id_path("rule_id"))
contact_rules.bind_action("GET", "/summary", contact_rule_actions.summarize_rules)

notification_channels = _build_resource_blueprint(_NAMESPACE_PATH, "notification_channels")
notification_channels.bind_crud_actions(contact_actions, _build_id_path("channel_id"))
notification_channels.bind_action(
    "POST", f"{_build_id_path('channel_id')}/test", contact_actions.send_channel_test, status=200
)

# Instance-wide applications. For other applications, owners can list the rejected requests.
_APPLICATION_PATH = "/<int:application_id>"
applications = _build_resource_blueprint("", "applications")
applications.bind_action("GET", "", application_actions.list_applications)
applications.bind_action("POST", "", application_actions.create_application)
applications.bind_action("DELETE", _APPLICATION_PATH, application_actions.delete_application)
applications.bind_action(
    "POST", f"{_APPLICATION_PATH}/renew-secret", application_actions.renew_secret
)
applications.bind_action(
    "GET", f"{_APPLICATION_PATH}/people", application_actions.list_application_users
)
applications.bind_action(
    "GET", f"{_APPLICATION_PATH}/refused_requests", application_actions.list_rejected_requests
)

# Members, invitations and roles.
members = _build_resource_blueprint(_NAMESPACE_PATH, "members")
members.bind_action("GET", "", member_actions.list_direct_members, limit=RateLimitGroup.MEMBERS)
members.bind_action("GET", "/all", member_actions.list_all_members, limit=RateLimitGroup.MEMBERS)
members.bind_action(
    "GET", "/<int:user_id>", member_actions.show_direct_member, limit=RateLimitGroup.MEMBERS
)
members.bind_action(
    "GET", "/all/<int:user_id>", member_actions.show_member, limit=RateLimitGroup.MEMBERS
)
members.bind_action("POST", "", member_actions.add_members)
members.bind_action("PUT", "/<int:user_id>", member_actions.change_member)
members.bind_action("DELETE", "/<int:user_id>", member_actions.remove_member)

invitations = _build_resource_blueprint(_NAMESPACE_PATH, "invitations")
invitations.bind_action(
    "GET", "", invitation_actions.list_invitations, limit=RateLimitGroup.MEMBERS
)
invitations.bind_action("POST", "", invitation_actions.send_invitations)
invitations.bind_action("PUT", "/<string:email>", invitation_actions.change_invitation)
invitations.bind_action("DELETE", "/<string:email>", invitation_actions.revoke_invitation)

member_roles = _build_resource_blueprint("", "member_roles")
member_roles.bind_crud_actions(role_actions, "/<int:role_id>")

group_member_roles = ResourceBlueprint(
    "group_member_roles", __name__, url_prefix="/groups/<string:reference>/member_roles"
)
group_member_roles.bind_crud_actions(role_actions, "/<int:role_id>")

# Destinations of the audit log.
audit_streams = _build_resource_blueprint("", "audit_streams")
audit_streams.bind_crud_actions(audit_stream_actions, "/<int:stream_id>")
audit_streams.bind_action(
    "POST", "/<int:stream_id>/rotate_secret", audit_stream_actions.rotate_secret
)
audit_streams.bind_action(
    "POST", "/<int:stream_id>/test", audit_stream_actions.send_test, status=200
)

_HEARTBEAT_PATH = _build_id_path("heartbeat_id")
heartbeats = _build_resource_blueprint(_PROJECT_PATH, "heartbeats")
heartbeats.bind_crud_actions(heartbeat_actions, _HEARTBEAT_PATH)
heartbeats.bind_action(
    "POST", f"{_HEARTBEAT_PATH}/pause", heartbeat_actions.pause_heartbeat, status=200
)
heartbeats.bind_action(
    "POST", f"{_HEARTBEAT_PATH}/resume", heartbeat_actions.resume_heartbeat, status=200
)
heartbeats.bind_action("GET", f"{_HEARTBEAT_PATH}/url", heartbeat_actions.show_url, writes=True)
heartbeats.bind_action("POST", f"{_HEARTBEAT_PATH}/reset_url", heartbeat_actions.reset_url)
heartbeats.bind_action("GET", f"{_HEARTBEAT_PATH}/pings", heartbeat_actions.list_pings)

# Schedules, current on-call users, and shift changes.
_SCHEDULES_PATH, _SCHEDULE_PATH = (
    f"{_NAMESPACE_PATH}/on_call/schedules",
    _build_id_path("schedule_id"),
)
on_call_schedules = ResourceBlueprint("on_call_schedules", __name__, url_prefix=_SCHEDULES_PATH)
on_call_schedules.bind_crud_actions(on_call_actions, _SCHEDULE_PATH)
on_call_schedules.bind_action("GET", "/current", on_call_actions.show_all_on_call)
on_call_schedules.bind_action("GET", f"{_SCHEDULE_PATH}/current", on_call_actions.show_on_call)
on_call_schedules.bind_action("GET", f"{_SCHEDULE_PATH}/shifts", on_call_actions.list_shifts)
on_call_schedules.bind_action("GET", f"{_SCHEDULE_PATH}/balance", on_call_actions.show_balance)


def _build_schedule_blueprint(name: str) -> ResourceBlueprint:
    """Return a blueprint for a schedule's URL path followed by the resource name."""
    path = f"{_SCHEDULES_PATH}{_SCHEDULE_PATH}/{name}"
    return ResourceBlueprint(f"on_call_{name}", __name__, url_prefix=path)


on_call_overrides = _build_schedule_blueprint("overrides")
on_call_overrides.bind_crud_actions(overrides_and_swaps, _build_id_path("override_id"))

on_call_swaps = _build_schedule_blueprint("swaps")
on_call_swaps.bind_crud_actions(overrides_and_swaps, _build_id_path("swap_id"))

on_call_swap_requests = _build_schedule_blueprint("swap_requests")
on_call_swap_requests.bind_crud_actions(swap_requests, _build_id_path("request_id"))
on_call_swap_requests.bind_action(
    "POST", f"{_build_id_path('request_id')}/answer", swap_requests.answer_swap_request
)

on_call_handover_notes = _build_schedule_blueprint("handover_notes")
on_call_handover_notes.bind_crud_actions(report_actions, _build_id_path("note_id"))
on_call_handover_notes.bind_action("GET", "/draft", report_actions.draft_handoff_note)

_CALENDAR_PATH = _build_id_path("calendar_id")
on_call_conflicts = _build_schedule_blueprint("conflicts")
on_call_conflicts.bind_crud_actions(conflicts, "")
on_call_holidays = _build_schedule_blueprint("holidays")
on_call_holidays.bind_crud_actions(absence_actions, "")
on_call_holiday_calendars = _build_schedule_blueprint("holiday_calendars")
on_call_holiday_calendars.bind_crud_actions(absence_actions, _CALENDAR_PATH)
own_absence_calendars = ResourceBlueprint(
    "own_absence_calendars", __name__, url_prefix="/user/on_call/absence_calendars"
)
own_absence_calendars.bind_crud_actions(absence_actions, _CALENDAR_PATH)
_REFRESH_PATH = f"{_CALENDAR_PATH}/refresh"
own_absence_calendars.bind_action(
    "POST", _REFRESH_PATH, absence_actions.refresh_own_calendar, status=200
)
on_call_holiday_calendars.bind_action(
    "POST", _REFRESH_PATH, absence_actions.refresh_holiday_calendar, status=200
)
own_absences = ResourceBlueprint("own_absences", __name__, url_prefix="/user/on_call/absences")
own_absences.bind_crud_actions(absence_actions, _build_id_path("absence_id"))

own_on_call = ResourceBlueprint("own_on_call", __name__, url_prefix="/user/on_call")
own_on_call.bind_action("GET", "", my_on_call.show_own_on_call)
own_on_call.bind_action("GET", "/cover", my_on_call.preview_cover)
own_on_call.bind_action("POST", "/cover", my_on_call.cover_shifts)
_MAY_RETURN_404 = [declare_error_statuses(HTTPStatus.NOT_FOUND)]
own_on_call.bind_action(
    "GET", "/calendar", calendar_feeds.show_own_calendar, around=_MAY_RETURN_404
)
own_on_call.bind_action("POST", "/calendar", calendar_feeds.renew_own_calendar)
own_on_call.bind_action(
    "DELETE", "/calendar", calendar_feeds.revoke_own_calendar, around=_MAY_RETURN_404
)

# Incidents and their rules.
_INCIDENT_PATH = f"{_PROJECT_PATH}/incidents{_build_id_path('iid', MAX_IID)}"
incidents = _build_resource_blueprint(_PROJECT_PATH, "incidents")
incidents.bind_crud_actions(incident_actions, _build_id_path("iid", MAX_IID))
incidents.bind_action(
    "POST", f"{_build_id_path('iid', MAX_IID)}/page", incident_actions.page_responders, status=200
)

incident_alerts = ResourceBlueprint(
    "incident_alerts", __name__, url_prefix=f"{_INCIDENT_PATH}/alerts"
)
incident_alerts.bind_crud_actions(incident_actions, _build_id_path("alert_iid", MAX_IID))

incident_notes = ResourceBlueprint("incident_notes", __name__, url_prefix=f"{_INCIDENT_PATH}/notes")
incident_notes.bind_crud_actions(note_actions, _build_id_path("note_id"))

incident_rules = _build_resource_blueprint(_PROJECT_PATH, "incident_rules")
incident_rules.bind_crud_actions(rule_actions, _build_id_path("rule_id"))

# Identity providers for sign-in.
identity_providers = _build_resource_blueprint("/admin", "identity_providers")
identity_providers.bind_crud_actions(identity_provider_actions, "/<int:provider_id>")
identity_providers.bind_action(
    "POST",
    "/<int:provider_id>/test",
    identity_provider_actions.test_connection,
    status=200,
)

# Results reported by external CI.
environments = _build_resource_blueprint(_PROJECT_PATH, "environments")
environments.bind_crud_actions(environment_actions, "/<int:environment_id>")
environments.bind_action(
    "POST", "/<int:environment_id>/stop", environment_actions.stop_environment, status=200
)

deployments = _build_resource_blueprint(_PROJECT_PATH, "deployments")
deployments.bind_crud_actions(deployment_actions, "/<int:deployment_id>")

commit_statuses = ResourceBlueprint("commit_statuses", __name__, url_prefix=_PROJECT_PATH)
commit_statuses.bind_action(
    "GET", "/repository/commits/<sha:sha>/statuses", status_actions.list_statuses
)
commit_statuses.bind_action("POST", "/statuses/<sha:sha>", status_actions.report_status)

_RELEASE_PATH = "/<path:tag_name>"
_LINKS_PATH = f"{_RELEASE_PATH}/assets/links"
_LINK_PATH = f"{_LINKS_PATH}/<int:link_id>"
releases = _build_resource_blueprint(_PROJECT_PATH, "releases")
releases.bind_action("GET", "", release_actions.list_releases)
releases.bind_action("GET", "/permalink/latest", release_actions.show_latest_release)
releases.bind_action("GET", _RELEASE_PATH, release_actions.show_release)
releases.bind_action("POST", "", release_actions.create_release)
releases.bind_action("PUT", _RELEASE_PATH, release_actions.change_release)
releases.bind_action("DELETE", _RELEASE_PATH, release_actions.delete_release, status=200)
releases.bind_action("GET", _LINKS_PATH, release_actions.list_links)
releases.bind_action("GET", _LINK_PATH, release_actions.show_link)
releases.bind_action("POST", _LINKS_PATH, release_actions.create_link)
releases.bind_action("PUT", _LINK_PATH, release_actions.change_link)
releases.bind_action("DELETE", _LINK_PATH, release_actions.delete_link, status=200)

# Webhooks. GitLab's hooks are created and changed as webhooks, since none of GitLab's events occur
# here.
_WEBHOOK_PATH, _DELIVERY_PATH = _build_id_path("webhook_id"), _build_id_path("delivery_id")
webhooks = _build_resource_blueprint(_PROJECT_PATH, "webhooks")
webhooks.bind_crud_actions(webhook_actions, _WEBHOOK_PATH)
webhooks.bind_action("POST", f"{_WEBHOOK_PATH}/rotate_secret", webhook_actions.rotate_secret)
webhooks.bind_action("POST", f"{_WEBHOOK_PATH}/test", webhook_actions.send_test, status=200)

hooks = _build_resource_blueprint(_PROJECT_PATH, "hooks")
hooks.bind_crud_actions(webhook_actions, _WEBHOOK_PATH)

webhook_deliveries = ResourceBlueprint(
    "webhook_deliveries", __name__, url_prefix=f"{_PROJECT_PATH}/webhooks{_WEBHOOK_PATH}/deliveries"
)
webhook_deliveries.bind_crud_actions(webhook_actions, _DELIVERY_PATH)
webhook_deliveries.bind_action(
    "POST", f"{_DELIVERY_PATH}/send_again", webhook_actions.resend_delivery, status=202
)

# Escalation policies, alert routes, and silences.
escalation_policies = _build_resource_blueprint(_NAMESPACE_PATH, "escalation_policies")
escalation_policies.bind_crud_actions(escalation_actions, "/<int:policy_id>")

alert_routes = _build_resource_blueprint(_NAMESPACE_PATH, "alert_routes")
alert_routes.bind_crud_actions(escalation_actions, "/<int:route_id>")
alert_routes.bind_action("POST", "/dry_run", escalation_actions.show_dry_run)

silences = _build_resource_blueprint(_NAMESPACE_PATH, "silences")
silences.bind_crud_actions(silence_actions, "/<int:silence_id>")
silences.bind_action("GET", "/preview", silence_actions.preview_silence)

flap_settings = _build_resource_blueprint(_PROJECT_PATH, "flap_settings")
flap_settings.bind_action("GET", "", silence_actions.show_flap_settings)
flap_settings.bind_action("PUT", "", silence_actions.change_flap_settings)

_ALERT_PATH = f"{_PROJECT_PATH}/alerts{_build_id_path('iid', MAX_IID)}"
alert_mutes = ResourceBlueprint("alert_mutes", __name__, url_prefix=_ALERT_PATH)
alert_mutes.bind_action("GET", "/mute", silence_actions.show_mute)

# Timelines of alerts and incidents.
alert_timeline = ResourceBlueprint("alert_timeline", __name__, url_prefix=f"{_ALERT_PATH}/timeline")
alert_timeline.bind_action("GET", "", timeline_actions.list_alert_timeline)

incident_timeline = ResourceBlueprint("incident_timeline", __name__, url_prefix=_INCIDENT_PATH)
incident_timeline.bind_action("GET", "/timeline", timeline_actions.list_incident_timeline)
incident_timeline.bind_action("GET", "/surroundings", timeline_actions.show_responders_and_runbooks)

maintenance_windows = _build_resource_blueprint(_NAMESPACE_PATH, "maintenance_windows")
maintenance_windows.bind_crud_actions(maintenance_window_actions, "/<int:window_id>")
