"""Delivers audit events to their destinations."""

import logging

from domain.audit_streams.streams import AUDIT_STREAMS
from web.jobs.destinations import DestinationWorker


class AuditStreaming(DestinationWorker):
    """The deliveries of audit events by one worker."""

    name = "audit streams"
    due = AUDIT_STREAMS.due
    kind = AUDIT_STREAMS
    log = logging.getLogger("gatebell.audit_streams")
