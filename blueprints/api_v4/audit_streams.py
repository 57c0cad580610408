"""/api/v4/audit_streams: destinations of the audit log, for administrators."""

from domain.audit_streams import actions
from web.api.operations import Resources

_ONE = "/<int:stream_id>"

audit_streams = Resources("audit_streams", __name__, url_prefix="/audit_streams")
audit_streams.bind_usual(actions, _ONE)
audit_streams.bind("POST", f"{_ONE}/rotate_secret", actions.rotate_secret)
audit_streams.bind("POST", f"{_ONE}/test", actions.send_test, status=200)
