"""Tables in plain SQLAlchemy, without Flask and without product rules."""

from models.alert import ALERT_DAY_ADDITIONS, Alert, AlertCounter, AlertDay
from models.alert_activity import AlertNote, Assignment, Occurrence
from models.alert_batch import AlertBatch, AlertBatchItem, SavedAlertFilter
from models.alert_change import AlertChange, AlertFollower
from models.api_usage import CallCount, CallShape, ChangeNotice
from models.application import Application, ApplicationSecret
from models.attempt import AttemptCount
from models.audit_event import AuditEvent
from models.audit_seal import AuditKey, AuditSeal
from models.audit_stream import AuditStream, AuditStreamEntry
from models.authorization import Authorization, Consent
from models.base import Base
from models.ci_cd import CommitStatus, Deployment, ProjectRelease, ReleaseLink
from models.delivery import Delivery
from models.device import DeviceAuthorization
from models.environment import Environment
from models.escalation import AlertRoute, Escalation, EscalationPage, EscalationPolicy
from models.heartbeat import Heartbeat, HeartbeatPing
from models.host import Host, Installation, JobTurn, SchemaSupport, SecretKeyUse
from models.idempotent_request import IdempotentRequest
from models.incident import (
    Incident,
    IncidentAlert,
    IncidentAssignee,
    IncidentCounter,
    IncidentFingerprint,
    IncidentNote,
    IncidentRule,
    IncidentWaiting,
)
from models.instance_setting import InstanceSetting
from models.integration import Integration
from models.mail import AssignmentNotice, KnownGaps, Mail
from models.member import Invitation, Member, MemberRole
from models.namespace import FormerPath, Group, Project
from models.notifications import (
    Contact,
    Page,
    PageBatch,
    PageMessage,
    PageRecipient,
    PageTotal,
)
from models.on_call import (
    OnCallFeed,
    OnCallOverride,
    OnCallRotation,
    OnCallSchedule,
    OnCallSwap,
    OnCallTurn,
)
from models.pushed_request import PushedRequest, SeenProof
from models.reachability import UnreachableTime, WebServer
from models.registry import (
    RegistryKey,
    RegistryManifest,
    RegistryRemoval,
    RegistryRepository,
    RegistryTag,
)
from models.second_factor import Passkey, RecoveryCode, TotpDevice
from models.self_monitor import SelfMonitorCheck
from models.signing_key import SigningKey
from models.silence import FlapSetting, MaintenanceWindow, Silence
from models.token import AccessToken, PersonalAccessToken
from models.token_refusal import TokenRefusal
from models.user import Bot, EmailConfirmation, SignIn, User
from models.webhook import WebhookDelivery, WebhookEndpoint, WebhookIncidentChange

__all__ = [
    "ALERT_DAY_ADDITIONS",
    "AccessToken",
    "Alert",
    "AlertBatch",
    "AlertBatchItem",
    "AlertChange",
    "AlertCounter",
    "AlertDay",
    "AlertFollower",
    "AlertNote",
    "AlertRoute",
    "Application",
    "ApplicationSecret",
    "Assignment",
    "AssignmentNotice",
    "AttemptCount",
    "AuditEvent",
    "AuditKey",
    "AuditSeal",
    "AuditStream",
    "AuditStreamEntry",
    "Authorization",
    "Base",
    "Bot",
    "CallCount",
    "CallShape",
    "ChangeNotice",
    "CommitStatus",
    "Consent",
    "Contact",
    "Delivery",
    "Deployment",
    "DeviceAuthorization",
    "EmailConfirmation",
    "Environment",
    "Escalation",
    "EscalationPage",
    "EscalationPolicy",
    "FlapSetting",
    "FormerPath",
    "Group",
    "Heartbeat",
    "HeartbeatPing",
    "Host",
    "IdempotentRequest",
    "Incident",
    "IncidentAlert",
    "IncidentAssignee",
    "IncidentCounter",
    "IncidentFingerprint",
    "IncidentNote",
    "IncidentRule",
    "IncidentWaiting",
    "Installation",
    "InstanceSetting",
    "Integration",
    "Invitation",
    "JobTurn",
    "KnownGaps",
    "Mail",
    "MaintenanceWindow",
    "Member",
    "MemberRole",
    "Occurrence",
    "OnCallFeed",
    "OnCallOverride",
    "OnCallRotation",
    "OnCallSchedule",
    "OnCallSwap",
    "OnCallTurn",
    "Page",
    "PageBatch",
    "PageMessage",
    "PageRecipient",
    "PageTotal",
    "Passkey",
    "PersonalAccessToken",
    "Project",
    "ProjectRelease",
    "PushedRequest",
    "RecoveryCode",
    "RegistryKey",
    "RegistryManifest",
    "RegistryRemoval",
    "RegistryRepository",
    "RegistryTag",
    "ReleaseLink",
    "SavedAlertFilter",
    "SchemaSupport",
    "SecretKeyUse",
    "SeenProof",
    "SelfMonitorCheck",
    "SignIn",
    "SigningKey",
    "Silence",
    "TokenRefusal",
    "TotpDevice",
    "UnreachableTime",
    "User",
    "WebServer",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookIncidentChange",
]
