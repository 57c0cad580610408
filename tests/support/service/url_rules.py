"""URL rules that are compiled once for all apps of a process.

Werkzeug compiles two functions for each rule, which is nearly all that making an app costs: a fifth
of a second for more than five hundred rules, and thousands of tests have an app of their own.
"""

from typing import Any, Final

from werkzeug.routing import Rule

#: Of the rule itself, not of what was compiled for it.
_OWN: Final = "map"
_compiled: dict[tuple[object, ...], dict[str, Any]] = {}


class RememberedRule(Rule):
    """A rule that takes over what was compiled for an equal one of another app.

    Only apps with the same converters may share rules.
    """

    def compile(self) -> None:
        """Take over what an equal rule has, or compile."""
        key = (
            *(self.rule, self.endpoint, self.subdomain, self.host, repr(self.defaults)),
            *(self.methods and frozenset(self.methods), repr(sorted(vars(self)))),
            *(self.strict_slashes, self.merge_slashes, self.build_only, self.websocket),
        )
        if (known := _compiled.get(key)) is not None:
            vars(self).update(known)
            return
        super().compile()
        _compiled[key] = {name: value for name, value in vars(self).items() if name != _OWN}
