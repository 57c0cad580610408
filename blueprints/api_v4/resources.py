"""API resources that consist only of actions, each with its URLs.

Resources with custom views, such as downloads, have their own modules in this package.
"""

from http import HTTPStatus

from domain.accounts.identity_providers import actions as identity_provider_actions
from domain.alerts.listing.queries import LARGEST_IID
from domain.ci_cd import deployment_actions, environment_actions, release_actions, status_actions
from domain.core.database.paging import LARGEST_ID
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
from domain.paging.on_call import change_actions, feeds, my_on_call
from domain.paging.silences import actions as silence_actions
from domain.projects import invitation_actions, member_actions
from domain.projects import member_roles as role_actions
from domain.reports import actions as report_actions
from web.access.api_limits import Family
from web.api.description.described import refuses_with
from web.api.operations import Resources

_PROJECT = "/projects/<path:reference>"
_NAMESPACE = "/<any(projects, groups):kind>/<path:reference>"


def _one(name: str, largest: int = LARGEST_ID) -> str:
    """Return the part of a URL for a number; the converter rejects numbers above `largest`."""
    return f"/<int(max={largest}):{name}>"


def _of(place: str, name: str) -> Resources:
    """Return resources below `place`, with their own name as their part of the URL."""
    return Resources(name, __name__, url_prefix=f"{place}/{name}")


# Contacts and notification channels.
contacts = _of("/user", "contacts")
contacts.bind_usual(contact_actions, _one("contact_id"))
contacts.bind("POST", f"{_one('contact_id')}/confirm", contact_actions.confirm_contact, status=200)
contacts.bind("POST", f"{_one('contact_id')}/send_code", contact_actions.send_code, status=200)
contacts.bind("POST", f"{_one('contact_id')}/test", contact_actions.send_contact_test, status=200)
contacts.bind("GET", "/preferences", contact_actions.show_preferences)
contacts.bind("PUT", "/preferences", contact_actions.change_preferences)

contact_rules = Resources("contact_rules", __name__, url_prefix="/user/contacts/rules")
contact_rules.bind_usual(contact_rule_actions, _one("rule_id"))
contact_rules.bind("GET", "/summary", contact_rule_actions.summarize_rules)

notification_channels = _of(_NAMESPACE, "notification_channels")
notification_channels.bind_usual(contact_actions, _one("channel_id"))
notification_channels.bind(
    "POST", f"{_one('channel_id')}/test", contact_actions.send_channel_test, status=200
)

# Applications of the instance. Owners of other applications can also list their rejected requests.
_APPLICATION = "/<int:application_id>"
applications = _of("", "applications")
applications.bind("GET", "", application_actions.list_applications)
applications.bind("POST", "", application_actions.create_application)
applications.bind("DELETE", _APPLICATION, application_actions.delete_application)
applications.bind("POST", f"{_APPLICATION}/renew-secret", application_actions.renew_secret)
applications.bind("GET", f"{_APPLICATION}/people", application_actions.list_application_users)
applications.bind(
    "GET", f"{_APPLICATION}/refused_requests", application_actions.list_refused_requests
)

# Members, invitations and roles.
members = _of(_NAMESPACE, "members")
members.bind("GET", "", member_actions.list_direct_members, limit=Family.MEMBERS)
members.bind("GET", "/all", member_actions.list_all_members, limit=Family.MEMBERS)
members.bind("GET", "/<int:user_id>", member_actions.show_direct_member, limit=Family.MEMBERS)
members.bind("GET", "/all/<int:user_id>", member_actions.show_member, limit=Family.MEMBERS)
members.bind("POST", "", member_actions.add_members)
members.bind("PUT", "/<int:user_id>", member_actions.change_member)
members.bind("DELETE", "/<int:user_id>", member_actions.remove_member)

invitations = _of(_NAMESPACE, "invitations")
invitations.bind("GET", "", invitation_actions.list_invitations, limit=Family.MEMBERS)
invitations.bind("POST", "", invitation_actions.invite)
invitations.bind("PUT", "/<string:email>", invitation_actions.change_invitation)
invitations.bind("DELETE", "/<string:email>", invitation_actions.revoke_invitation)

member_roles = _of("", "member_roles")
member_roles.bind_usual(role_actions, "/<int:role_id>")

group_member_roles = Resources(
    "group_member_roles", __name__, url_prefix="/groups/<string:reference>/member_roles"
)
group_member_roles.bind_usual(role_actions, "/<int:role_id>")

# Destinations of the audit log.
audit_streams = _of("", "audit_streams")
audit_streams.bind_usual(audit_stream_actions, "/<int:stream_id>")
audit_streams.bind("POST", "/<int:stream_id>/rotate_secret", audit_stream_actions.rotate_secret)
audit_streams.bind("POST", "/<int:stream_id>/test", audit_stream_actions.send_test, status=200)

_HEARTBEAT = _one("heartbeat_id")
heartbeats = _of(_PROJECT, "heartbeats")
heartbeats.bind_usual(heartbeat_actions, _HEARTBEAT)
heartbeats.bind("POST", f"{_HEARTBEAT}/pause", heartbeat_actions.pause_heartbeat, status=200)
heartbeats.bind("POST", f"{_HEARTBEAT}/resume", heartbeat_actions.resume_heartbeat, status=200)
heartbeats.bind("GET", f"{_HEARTBEAT}/url", heartbeat_actions.show_url, writes=True)
heartbeats.bind("POST", f"{_HEARTBEAT}/reset_url", heartbeat_actions.reset_url)
heartbeats.bind("GET", f"{_HEARTBEAT}/pings", heartbeat_actions.list_pings)

# Schedules, current on-call users, and changes of shifts.
_SCHEDULES, _SCHEDULE = f"{_NAMESPACE}/on_call/schedules", _one("schedule_id")
on_call_schedules = Resources("on_call_schedules", __name__, url_prefix=_SCHEDULES)
on_call_schedules.bind_usual(on_call_actions, _SCHEDULE)
on_call_schedules.bind("GET", "/current", on_call_actions.show_all_on_call)
on_call_schedules.bind("GET", f"{_SCHEDULE}/current", on_call_actions.show_on_call)
on_call_schedules.bind("GET", f"{_SCHEDULE}/shifts", on_call_actions.list_shifts)
on_call_schedules.bind("GET", f"{_SCHEDULE}/balance", on_call_actions.show_balance)

on_call_overrides = Resources(
    "on_call_overrides", __name__, url_prefix=f"{_SCHEDULES}{_SCHEDULE}/overrides"
)
on_call_overrides.bind_usual(change_actions, _one("override_id"))

on_call_swaps = Resources("on_call_swaps", __name__, url_prefix=f"{_SCHEDULES}{_SCHEDULE}/swaps")
on_call_swaps.bind_usual(change_actions, _one("swap_id"))

on_call_handover_notes = Resources(
    "on_call_handover_notes", __name__, url_prefix=f"{_SCHEDULES}{_SCHEDULE}/handover_notes"
)
on_call_handover_notes.bind_usual(report_actions, _one("note_id"))
on_call_handover_notes.bind("GET", "/draft", report_actions.draft_handover_note)

own_on_call = Resources("own_on_call", __name__, url_prefix="/user/on_call")
own_on_call.bind("GET", "", my_on_call.show_own_on_call)
own_on_call.bind("GET", "/cover", my_on_call.preview_cover)
own_on_call.bind("POST", "/cover", my_on_call.cover_shifts)
_MAY_BE_MISSING = [refuses_with(HTTPStatus.NOT_FOUND)]
own_on_call.bind("GET", "/calendar", feeds.show_own_calendar, around=_MAY_BE_MISSING)
own_on_call.bind("POST", "/calendar", feeds.renew_own_calendar)
own_on_call.bind("DELETE", "/calendar", feeds.end_own_calendar, around=_MAY_BE_MISSING)

# Incidents and their rules.
_INCIDENT = f"{_PROJECT}/incidents{_one('iid', LARGEST_IID)}"
incidents = _of(_PROJECT, "incidents")
incidents.bind_usual(incident_actions, _one("iid", LARGEST_IID))
incidents.bind(
    "POST", f"{_one('iid', LARGEST_IID)}/page", incident_actions.page_responders, status=200
)

incident_alerts = Resources("incident_alerts", __name__, url_prefix=f"{_INCIDENT}/alerts")
incident_alerts.bind_usual(incident_actions, _one("alert_iid", LARGEST_IID))

incident_notes = Resources("incident_notes", __name__, url_prefix=f"{_INCIDENT}/notes")
incident_notes.bind_usual(note_actions, _one("note_id"))

incident_rules = _of(_PROJECT, "incident_rules")
incident_rules.bind_usual(rule_actions, _one("rule_id"))

# Identity providers for sign-in.
identity_providers = _of("/admin", "identity_providers")
identity_providers.bind_usual(identity_provider_actions, "/<int:provider_id>")
identity_providers.bind(
    "POST",
    "/<int:provider_id>/test",
    identity_provider_actions.test_connection,
    status=200,
)

# Results that external CI reports.
environments = _of(_PROJECT, "environments")
environments.bind_usual(environment_actions, "/<int:environment_id>")
environments.bind(
    "POST", "/<int:environment_id>/stop", environment_actions.stop_environment, status=200
)

deployments = _of(_PROJECT, "deployments")
deployments.bind_usual(deployment_actions, "/<int:deployment_id>")

commit_statuses = Resources("commit_statuses", __name__, url_prefix=_PROJECT)
commit_statuses.bind("GET", "/repository/commits/<sha:sha>/statuses", status_actions.list_statuses)
commit_statuses.bind("POST", "/statuses/<sha:sha>", status_actions.report_status)

_RELEASE = "/<path:tag_name>"
_LINKS = f"{_RELEASE}/assets/links"
_LINK = f"{_LINKS}/<int:link_id>"
releases = _of(_PROJECT, "releases")
releases.bind("GET", "", release_actions.list_releases)
releases.bind("GET", "/permalink/latest", release_actions.show_latest)
releases.bind("GET", _RELEASE, release_actions.show_release)
releases.bind("POST", "", release_actions.create_release)
releases.bind("PUT", _RELEASE, release_actions.change_release)
releases.bind("DELETE", _RELEASE, release_actions.delete_release, status=200)
releases.bind("GET", _LINKS, release_actions.list_links)
releases.bind("GET", _LINK, release_actions.show_link)
releases.bind("POST", _LINKS, release_actions.create_link)
releases.bind("PUT", _LINK, release_actions.change_link)
releases.bind("DELETE", _LINK, release_actions.delete_link, status=200)

# Webhooks. GitLab's hooks are created and changed as webhooks, since none of GitLab's events occur
# here.
_WEBHOOK, _SENT = _one("webhook_id"), _one("delivery_id")
webhooks = _of(_PROJECT, "webhooks")
webhooks.bind_usual(webhook_actions, _WEBHOOK)
webhooks.bind("POST", f"{_WEBHOOK}/rotate_secret", webhook_actions.rotate_secret)
webhooks.bind("POST", f"{_WEBHOOK}/test", webhook_actions.send_test, status=200)

hooks = _of(_PROJECT, "hooks")
hooks.bind_usual(webhook_actions, _WEBHOOK)

webhook_deliveries = Resources(
    "webhook_deliveries", __name__, url_prefix=f"{_PROJECT}/webhooks{_WEBHOOK}/deliveries"
)
webhook_deliveries.bind_usual(webhook_actions, _SENT)
webhook_deliveries.bind("POST", f"{_SENT}/send_again", webhook_actions.send_again, status=202)

# Escalation policies, alert routes, and silences.
escalation_policies = _of(_NAMESPACE, "escalation_policies")
escalation_policies.bind_usual(escalation_actions, "/<int:policy_id>")

alert_routes = _of(_NAMESPACE, "alert_routes")
alert_routes.bind_usual(escalation_actions, "/<int:route_id>")
alert_routes.bind("POST", "/dry_run", escalation_actions.show_dry_run)

silences = _of(_NAMESPACE, "silences")
silences.bind_usual(silence_actions, "/<int:silence_id>")
silences.bind("GET", "/preview", silence_actions.preview_silence)

flap_settings = _of(_PROJECT, "flap_settings")
flap_settings.bind("GET", "", silence_actions.show_flap_settings)
flap_settings.bind("PUT", "", silence_actions.change_flap_settings)

_ALERT = f"{_PROJECT}/alerts{_one('iid', LARGEST_IID)}"
alert_mutes = Resources("alert_mutes", __name__, url_prefix=_ALERT)
alert_mutes.bind("GET", "/mute", silence_actions.show_mute)

# Timelines of alerts and incidents.
alert_timeline = Resources("alert_timeline", __name__, url_prefix=f"{_ALERT}/timeline")
alert_timeline.bind("GET", "", timeline_actions.list_alert_timeline)

incident_timeline = Resources("incident_timeline", __name__, url_prefix=_INCIDENT)
incident_timeline.bind("GET", "/timeline", timeline_actions.list_incident_timeline)
incident_timeline.bind("GET", "/surroundings", timeline_actions.show_surroundings)

maintenance_windows = _of(_NAMESPACE, "maintenance_windows")
maintenance_windows.bind_usual(maintenance_window_actions, "/<int:window_id>")
