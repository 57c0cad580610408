"""Job that notifies applications of ended sign-ins (OpenID Connect Back-Channel Logout 1.0)."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

from sqlalchemy.orm import Session

from domain.core.errors import InvalidError
from domain.core.keyring import Keyring
from domain.delivery.outgoing.errors import OutgoingError
from domain.delivery.outgoing.urls import parse_outgoing_url
from domain.oauth.openid.backchannel_logout import (
    LOGOUT_NOTIFICATIONS_ARE_DUE,
    EndedSession,
    claim_ended_sessions,
    create_logout_token,
    delete_ended_session,
    renew_logout_claim,
    schedule_logout_retry,
)
from web.jobs.scheduler import Job
from web.outgoing.client import OutgoingClient
from web.settings.stored_settings import read_current_settings

_log = logging.getLogger("gatebell.backchannel_logout")
#: Maximum number of ended sign-ins in one run.
_MAX_SIGN_INS_PER_RUN = 100
#: Maximum number of applications notified in parallel. A slow application thus delays few others.
_MAX_CONCURRENT_APPLICATIONS = 8
_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}


class BackchannelLogoutJob(Job):
    """Job that sends logout tokens to applications when sign-ins end."""

    name = "backchannel_logout"
    due = LOGOUT_NOTIFICATIONS_ARE_DUE
    connections = 2

    def process_all_due_work(self) -> int:
        """Notify applications of ended sign-ins, and return the number of sign-ins."""
        with Session(self.engine) as session, session.begin():
            ended = claim_ended_sessions(
                maximum=_MAX_SIGN_INS_PER_RUN, session=session, now=self.clock()
            )
        by_application: dict[int, list[EndedSession]] = defaultdict(list)
        for each in ended:
            by_application[each.application_id].append(each)
        with ThreadPoolExecutor(_MAX_CONCURRENT_APPLICATIONS) as pool:
            list(pool.map(self._notify_application_of_logouts, by_application.values()))
        return len(ended)

    def _notify_application_of_logouts(self, ended_sessions: Sequence[EndedSession]) -> None:
        """Notify one application of its ended sign-ins, and stop at the first failure."""
        client = OutgoingClient.from_settings(self.settings)
        try:
            for each in ended_sessions:
                if self.is_stopped.is_set() or not self._notify_application(each, client):
                    break
        finally:
            client.close_connection()

    def _notify_application(self, ended_session: EndedSession, client: OutgoingClient) -> bool:
        with Session(self.engine) as session, session.begin():
            url = renew_logout_claim(ended_session, session=session, now=self.clock())
        if url is None:  # another worker sends the notification
            return True
        problem = self._post_logout_token(ended_session, url, client) if url else None
        with Session(self.engine) as session, session.begin():
            if problem is None:
                delete_ended_session(ended_session, session=session)
                return True
            will_retry = schedule_logout_retry(ended_session, session=session, now=self.clock())
        fields = {
            "application": ended_session.application_uid,
            "reason": problem,
            "tries": ended_session.tries,
        }
        if will_retry:
            _log.warning(
                "Logout notification to an application failed; the worker will retry.",
                extra={"event": "backchannel_logout.attempt_failed", **fields},
            )
        else:
            _log.warning(
                "Logout notification to an application failed permanently.",
                extra={"event": "backchannel_logout.failed", **fields},
            )
        return False

    def _post_logout_token(
        self, ended_session: EndedSession, url: str, client: OutgoingClient
    ) -> str | None:
        """Post a logout token and return the problem, or None if it was delivered."""
        keyring = Keyring(self.settings.secret_key, *self.settings.secret_key_fallbacks)
        with Session(self.engine) as session, session.begin():
            issuer = read_current_settings(self.settings, session=session).base_url
            token = create_logout_token(
                ended_session, issuer=issuer, session=session, keyring=keyring, now=self.clock()
            )
        try:
            body = urlencode({"logout_token": token}).encode()
            return client.send_post(parse_outgoing_url(url), body, _HEADERS).problem
        except (OutgoingError, InvalidError) as error:
            return str(error)
