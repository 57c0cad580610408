"""URL rules that are compiled once for all apps of a process.

Werkzeug compiles two functions for each rule, which takes nearly all the time of creating an app: a
fifth of a second for more than five hundred rules, and thousands of tests create their own app.
"""

from typing import Any, Final

from werkzeug.routing import Rule

#: Attribute that belongs to a rule itself and is not shared.
_OWN: Final = "map"
_compiled: dict[tuple[object, ...], dict[str, Any]] = {}


class RememberedRule(Rule):
    """A rule that reuses the compiled functions of an equal rule in another app.

    Only apps with the same converters may share rules.
    """

    def compile(self) -> None:
        """Reuse the functions of an equal rule, or compile them."""
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
