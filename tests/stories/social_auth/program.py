"""An application with social-auth-core, whose framework is a dictionary.

It reads settings, the session and the parameters of the browser as JSON. It prints the URL that it
redirects to, or the user who signed in.
"""

import json
import sys

from social_core.backends.gitlab import GitLabOAuth2
from social_core.storage import BaseStorage
from social_core.strategy import BaseStrategy

GIVEN = json.loads(sys.argv[1])
LET_IN = {}


def let_in(backend, details, response, *args, **kwargs):
    """End the pipeline, and keep the user."""
    LET_IN.update(details=details, uid=backend.get_user_id(details, response))
    LET_IN["groups"] = backend.get_user_groups(response)


class Nonces:
    """Part of the storage; each state is used only once anyway."""

    @classmethod
    def use(cls, *_):
        return True

    consume = use


class Storage(BaseStorage):
    """The storage of the framework."""

    nonce = Nonces


class Strategy(BaseStrategy):
    """Methods that a framework provides."""

    session = GIVEN["session"]

    def get_setting(self, name):
        return GIVEN["settings"][name]

    def get_pipeline(self, backend=None):
        return ["social_core.pipeline.social_auth.social_details", "__main__.let_in"]

    def request_data(self, merge=True):
        return GIVEN["data"]

    def request_host(self):
        return "app.example"

    def build_absolute_uri(self, path=None):
        return path

    def redirect(self, url):
        return url

    def session_get(self, name, default=None):
        return self.session.get(name, default)

    def session_set(self, name, value):
        self.session[name] = value

    def session_pop(self, name):
        return self.session.pop(name, None)


backend = GitLabOAuth2(Strategy(Storage), redirect_uri=GIVEN["redirect_uri"])
if GIVEN["data"]:
    backend.auth_complete()
    print(json.dumps(LET_IN))
else:
    print(json.dumps({"location": backend.start(), "session": Strategy.session}))
