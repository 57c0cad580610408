"""Database tables in plain SQLAlchemy, without Flask and without business rules."""

from models.accounts import (
    AttemptCount,
    Bot,
    EmailConfirmation,
    Passkey,
    RecoveryCode,
    ReturnUrl,
    SignIn,
    TotpDevice,
    User,
)
from models.alerts import (
    ALERT_DAY_ADDITIONS,
    Alert,
    AlertBatch,
    AlertBatchItem,
    AlertChange,
    AlertCounter,
    AlertDay,
    AlertFollower,
    AlertNote,
    AlertReporter,
    Assignment,
    Delivery,
    Environment,
    Integration,
    Occurrence,
    SavedAlertFilter,
)
from models.api_usage import CallCount, CallSignature, ChangeNotice
from models.audit import AuditEvent, AuditKey, AuditSeal, AuditStream, AuditStreamEntry
from models.base import Base
from models.ci_cd import CommitStatus, Deployment, ProjectRelease, ReleaseLink
from models.escalations import (
    AlertRoute,
    Escalation,
    EscalationPage,
    EscalationPolicy,
    EscalationTurn,
    PendingEscalation,
)
from models.heartbeats import Heartbeat, HeartbeatPing
from models.identity_providers import Identity, IdentityProvider, IdentityRole
from models.incidents import (
    Incident,
    IncidentAlert,
    IncidentAssignee,
    IncidentCounter,
    IncidentFingerprint,
    IncidentNote,
    IncidentRule,
    IncidentRuleResponder,
    PendingIncidentAlert,
)
from models.instance import (
    Host,
    IdempotentRequest,
    Installation,
    InstanceSetting,
    JobTurn,
    SchemaSupport,
    SecretKeyUse,
    SelfMonitorCheck,
    UnreachableTime,
    WebServer,
)
from models.mail import AssignmentNotice, KnownGaps, Mail
from models.notifications import (
    Contact,
    ContactRule,
    Page,
    PageBatch,
    PageMessage,
    PageRecipient,
    PageTotal,
    PushKey,
)
from models.oauth import (
    AccessToken,
    Application,
    ApplicationSecret,
    Authorization,
    BackchannelSession,
    Consent,
    DeviceAuthorization,
    PersonalAccessToken,
    PushedRequest,
    RejectedOAuthRequest,
    SeenProof,
    ServiceAccount,
    SigningKey,
)
from models.on_call import (
    OnCallEligibility,
    OnCallFeed,
    OnCallOverride,
    OnCallRotation,
    OnCallSchedule,
    OnCallSwap,
    OnCallSwapRequest,
    OnCallTurn,
)
from models.on_call_absences import (
    OnCallAbsence,
    OnCallConflictNotice,
    OnCallHoliday,
    OnCallImportedCalendar,
)
from models.projects import (
    FormerPath,
    Group,
    Invitation,
    Member,
    MemberRole,
    Project,
    ProjectShare,
)
from models.registry import (
    RegistryKey,
    RegistryManifest,
    RegistryRemoval,
    RegistryRepository,
    RegistryTag,
)
from models.reports import IncidentDocument, OnCallHandoverNote
from models.silences import FlapSetting, MaintenanceWindow, Silence
from models.webhooks import WebhookDelivery, WebhookEndpoint, WebhookIncidentChange
