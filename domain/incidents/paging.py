"""Pages people about an incident: a message to each of their contacts, beside pages of alerts."""

from collections.abc import Sequence

from domain.access.actor import Work
from domain.audit.events import Actor
from domain.incidents.timeline import NewEntry, add_entries
from domain.incidents.types import HIGHEST_URGENCY, EntryKind, severity_of
from domain.notifications.asking import check_reachable
from domain.notifications.gathering import contacts_of
from domain.notifications.messages import one_line, short
from domain.notifications.queueing import queue_notice
from domain.projects.views import ProjectView
from models import Incident

_LONGEST_TITLE = 150


def page_people(
    work: Work, project: ProjectView, incident: Incident, names: Sequence[str], *, by: Actor | None
) -> Sequence[str]:
    """Page people about an incident, and return their names.

    Raises InvalidError that says who cannot be paged now, and why; then nobody is.
    """
    is_critical = incident.urgency == HIGHEST_URGENCY
    people = check_reachable(names, project, work, field="users", is_critical=is_critical)
    subject, text = _message(work, project, incident, by)
    sends_mail = bool(work.settings.mail_url)
    for user_id in sorted(people):
        key = f"incident {incident.id} to {user_id} at {work.now.isoformat()}"
        for contact_id in contacts_of(
            user_id, sends_mail=sends_mail, session=work.session, now=work.now
        ):
            queue_notice(contact_id, key, subject, text, session=work.session, now=work.now)
    paged = sorted(people.values())
    entries = [NewEntry(incident_id=incident.id, kind=EntryKind.PAGED, text=name) for name in paged]
    add_entries(entries, by=by, session=work.session, now=work.now)
    return paged


def _message(
    work: Work, project: ProjectView, incident: Incident, by: Actor | None
) -> tuple[str, str]:
    severity, title = severity_of(incident.urgency).value, one_line(incident.title)
    place, settings = f"{project.path} #{incident.iid}", work.settings
    asker = f"@{by.name}" if by else "the operator"
    facts = (
        f"Severity: {severity}",
        f"Project: {project.path}",
        f"Status: {incident.status}",
        f"Alerts: {incident.alerts}",
        f"Paged by: {asker}",
    )
    url = f"{settings.base_url}/{project.path}/-/incidents/{incident.iid}"
    lines = (f"Incident: {title}", "", *facts, "", f"Show incident #{incident.iid}: {url}")
    signature = f"\n\n-- \n{settings.instance_name}, {settings.base_url}\n"
    subject = f"[{severity}] Incident: {short(title, _LONGEST_TITLE)} ({place})"
    return subject, "\n".join(lines) + signature
