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
    SIGN_INS_HAVE_ENDED,
    EndedSession,
    claim_ended,
    forget_session,
    make_logout_token,
    postpone,
)
from web.jobs.scheduler import Job
from web.outgoing.client import OutgoingClient
from web.settings.stored import current_settings

_log = logging.getLogger("gatebell.backchannel_logout")
#: Maximum number of ended sign-ins in one run.
_MOST = 100
#: Number of applications notified in parallel, so that a slow application delays few others.
_AT_ONCE = 8
_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}


class BackchannelLogout(Job):
    """Job that sends logout tokens to applications when sign-ins end."""

    name = "backchannel_logout"
    due = SIGN_INS_HAVE_ENDED
    connections = 2

    def run_due(self) -> int:
        """Notify applications of the sign-ins that have ended and return their number."""
        with Session(self.engine) as session, session.begin():
            ended = claim_ended(most=_MOST, session=session, now=self.clock())
        by_application: dict[int, list[EndedSession]] = defaultdict(list)
        for each in ended:
            by_application[each.application_id].append(each)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self._tell_application, by_application.values()))
        return len(ended)

    def _tell_application(self, ended: Sequence[EndedSession]) -> None:
        """Notify one application of its ended sign-ins, and stop at the first failure."""
        client = OutgoingClient.of(self.settings)
        try:
            for each in ended:
                if self.is_stopped.is_set() or not self._tell(each, client):
                    break
        finally:
            client.close()

    def _tell(self, ended: EndedSession, client: OutgoingClient) -> bool:
        problem = self._send(ended, client) if ended.url else None
        with Session(self.engine) as session, session.begin():
            if problem is None:
                forget_session(ended, session=session)
                return True
            will_retry = postpone(ended, session=session, now=self.clock())
        fields = {"application": ended.application_uid, "reason": problem, "tries": ended.tries}
        if will_retry:
            _log.warning(
                "Logout notification of an application failed; the worker retries.",
                extra={"event": "backchannel_logout.attempt_failed", **fields},
            )
        else:
            _log.warning(
                "Logout notification of an application failed permanently.",
                extra={"event": "backchannel_logout.failed", **fields},
            )
        return False

    def _send(self, ended: EndedSession, client: OutgoingClient) -> str | None:
        """Post a logout token and return the problem, or None if it was delivered."""
        keyring = Keyring(self.settings.secret_key, *self.settings.secret_key_fallbacks)
        with Session(self.engine) as session, session.begin():
            issuer = current_settings(self.settings, session=session).base_url
            token = make_logout_token(
                ended, issuer=issuer, session=session, keyring=keyring, now=self.clock()
            )
        try:
            body = urlencode({"logout_token": token}).encode()
            return client.post(parse_outgoing_url(ended.url), body, _HEADERS).problem
        except (OutgoingError, InvalidError) as error:
            return str(error)
