"""Plans the requests of a recording: to each URL, to each form and to each command."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

import click
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Rule

from tests.golden.described import Description
from tests.golden.values import (
    BAD_OF_FORMS,
    COMMANDS_LEFT_OUT,
    WORDS,
    good_field,
    good_word,
)
from tests.golden.world import OFF, OLD, SHOP, World
from tests.support.wire.html_forms import HtmlForm, forms_in

#: Senders of requests: a user, or a token with few scopes; an empty name for a visitor.
_ALL = ("", "stan", "gus", "dora", "olga", "root", "read_api", "write_alerts")
_OF_PAGES = ("", "stan", "gus", "dora", "olga", "root")
_READING = ("GET",)
#: Fields of forms whose values are taken from the page that is shown.
_FROM_PAGE = re.compile(r"csrf|seal|seen|token|request|version")
_VARIABLE = re.compile(r"<(?:(\w+)(\([^>]*\))?:)?(\w+)>")
_MOST_FIELDS, _MOST_BUTTONS = 6, 3


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A request of a recording."""

    #: URL rule with its method, or the command.
    address: str
    #: Description of the case: the sender, the project and the body.
    case: str
    kind: str
    visitor: str = ""
    project: str = SHOP
    method: str = "GET"
    path: str = ""
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    #: Page of a form; the form may be sent to another URL.
    page: str = ""
    words: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Identify the same request in another recording."""
        return f"{self.address} [{self.case}]"


def to_json(plan: list[Planned]) -> str:
    """Return a plan as JSON, to be repeated later."""
    return json.dumps([asdict(each) for each in plan], ensure_ascii=False, indent=0)


def from_json(text: str) -> list[Planned]:
    """Read a plan."""
    return [Planned(**{**each, "words": tuple(each["words"])}) for each in json.loads(text)]


def planned(world: World, only: str = "") -> list[Planned]:
    """Return the requests to every address that `only` matches."""
    found: dict[str, Planned] = {}
    for each in (*_of_urls(world, only), *_of_forms(world, only), *_of_commands(world, only)):
        found.setdefault(each.key, each)
    return list(found.values())


def _of_urls(world: World, only: str) -> Iterator[Planned]:
    described = Description(world.send("GET", "/api/openapi.json").get_json())
    for rule in sorted(world.app.url_map.iter_rules(), key=lambda rule: rule.rule):
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            address = f"{method} {rule.rule}"
            if rule.endpoint != "static" and re.search(only, address):
                for path in _paths(rule.rule):
                    yield from _of_url(address, method, path, described)


def _of_url(address: str, method: str, path: str, described: Description) -> Iterator[Planned]:
    if path.startswith("/api/"):
        yield from _of_operation(address, method, path, described)
    elif method in _READING:
        yield from _of_page(address, path)
    else:
        yield from _of_post(address, path)


def _paths(rule: str) -> Iterator[str]:
    """Return a rule with names in braces, for each value that a variable can have."""
    found = _VARIABLE.search(rule)
    if found is None:
        yield rule
        return
    kind, arguments, name = found.groups()
    words = [f"{{{name}}}"]
    if kind == "any":
        words = re.findall(r"[\w-]+", arguments)
    for word in words:
        yield from _paths(rule[: found.start()] + word + rule[found.end() :])


def _of_operation(
    address: str, method: str, path: str, described: Description
) -> Iterator[Planned]:
    path = _with_reference(path)
    is_reading = method in _READING
    good = "" if is_reading else " good"
    base: dict[str, Any] = {"address": address, "kind": "api", "method": method, "path": path}
    asked = base | {"body": None if is_reading else described.good_body(method, path)}
    at = path.removeprefix("/api/v4")
    for who in _ALL:
        yield Planned(**asked, case=f"{who or 'nobody'} {at}{good}", visitor=who)
    for project in (OLD, OFF) if "{project" in path else ():
        case = f"olga {at} {project}{good}"
        yield Planned(**asked, case=case, visitor="olga", project=project)
    for name, bad in _bad_queries(path) if is_reading else described.bad_bodies(method, path):
        who = "root" if is_reading or _is_of_instance(path) else "olga"
        yield Planned(**(base | bad), case=f"{who} {at}{name}", visitor=who)
    if "{" in path:
        missing = re.sub(r"\{(\w+_id|iid)\}", "999999", path)
        yield Planned(**base | {"path": missing}, case=f"olga {missing}", visitor="olga", body={})


def _bad_queries(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for query in ("?page=0", "?unknown=1", "?per_page=x&sort=x&state=x&search=%00"):
        yield query, {"path": path + query}


def _is_of_instance(path: str) -> bool:
    return "/projects/" not in path and "/groups/" not in path


def _with_reference(path: str) -> str:
    name = "group_path" if "/groups/" in path else "project_reference"
    return path.replace("{reference}", f"{{{name}}}")


def _of_page(address: str, path: str) -> Iterator[Planned]:
    base: dict[str, Any] = {"address": address, "kind": "page", "path": path}
    for who in _OF_PAGES:
        yield Planned(**base, case=f"{who or 'nobody'} {path}", visitor=who)
    if "{project_path}" in path or "{full_path}" in path:
        for project in (OLD, OFF):
            yield Planned(**base, case=f"olga {path} {project}", visitor="olga", project=project)
    asked = base | {"path": f"{path}?page=0&unknown=1&status=x&sort=x&search=%E2%98%83"}
    yield Planned(**asked, case=f"olga {path} strange query", visitor="olga")


def _of_post(address: str, path: str) -> Iterator[Planned]:
    """Plan unintended requests: to URLs for machines, and to URLs of forms without their page."""
    method = address.partition(" ")[0]
    base: dict[str, Any] = {"address": address, "kind": "page", "method": method, "path": path}
    for who in ("", "stan", "gus", "olga", "root"):
        yield Planned(**base, case=f"{who or 'nobody'} {path} without a form", visitor=who)
    key = {"Authorization": "Bearer {integration_key}"}
    client = {"client_id": "{client_id}", "client_secret": "{client_secret}"}
    bodies: dict[str, Any] = {
        "client": {"form": client | {"token": "x", "scope": "read_user", "grant_type": "x"}},
        "password": {
            "form": client
            | {"grant_type": "password", "username": "olga", "password": "{password}"}
        },
        "device": {"form": client | {"scope": "read_user"}},
        "token": {"form": client | {"token": "{olga_token}"}},
        "alert": {"json": {"title": "Recorded", "severity": "low"}, "headers": key},
        "alerts": {
            "json": {"alerts": [{"status": "firing", "labels": {"alertname": "x"}}]},
            "headers": key,
        },
        "broken": {"text": "{not json", "headers": {**key, "Content-Type": "application/json"}},
        "metadata": {"json": {"redirect_uris": ["https://c.example/"], "client_name": "C"}},
    }
    if path.startswith(("/oauth/", "/-/ping", "/v2/", "/jwt/")) or "/alerts/notify" in path:
        for name, options in bodies.items():
            headers = options.pop("headers", {})
            yield Planned(**base, case=f"{path} {name}", headers=headers, body=options)


def _of_forms(world: World, only: str) -> Iterator[Planned]:
    """Return requests that submit the forms of all pages, with valid and invalid values."""
    matched = world.app.url_map.bind("localhost")
    rules = sorted(world.app.url_map.iter_rules(), key=lambda rule: rule.rule)
    seen = set()
    for rule in rules if any(_takes_form(rule, only) for rule in rules) else ():
        if "GET" not in (rule.methods or ()) or rule.rule.startswith(("/api/", "/help", "/oauth")):
            continue
        for page in _paths(rule.rule):
            who = "root" if page.startswith("/admin") else "olga"
            shown_at = filled(page, defaultdict(str, world.things[SHOP]))
            shown = _try(world, shown_at, who)
            for form in forms_in(shown) if shown else ():
                address, action = _action(form, shown_at, matched, world.things[SHOP])
                if form.method != "post" or address in seen or not re.search(only, address):
                    continue
                seen.add(address)
                yield from _of_form(address, page, action, form, who)


def _takes_form(rule: Rule, only: str) -> bool:
    is_post = "POST" in (rule.methods or ()) and not rule.rule.startswith("/api/")
    return is_post and bool(re.search(only, f"POST {rule.rule}"))


def _try(world: World, page: str, who: str) -> str:
    answer = world.send("GET", page, cookies=dict(world.cookies[who]))
    world.happened()
    is_page = answer.status_code == 200 and answer.mimetype == "text/html"
    return answer.text if is_page else ""


def _action(form: HtmlForm, page: str, matched: Any, things: dict[str, str]) -> tuple[str, str]:
    """Return the rule that a form is sent to, and its URL with placeholders for objects."""
    path = urlsplit(form.action).path or page
    try:
        rule, values = matched.match(path, method="POST", return_rule=True)
    except HTTPException:
        return f"POST {path}", path
    for name, value in values.items():
        if things.get(name) == str(value):
            path = path.replace(f"/{value}", f"/{{{name}}}", 1)
    return f"POST {rule.rule}", path


def _of_form(address: str, page: str, action: str, form: HtmlForm, owner: str) -> Iterator[Planned]:
    names = dict.fromkeys(name for name, _ in form.fields if not _FROM_PAGE.search(name))
    given = dict(form.fields)
    good = {name: good_field(name, action) or given[name] for name in names}
    kept = {name: value for name, value in good.items() if value}
    first, *others = form.buttons or [("", "")]
    button = dict([first]) if first[0] else {}
    base: dict[str, Any] = {
        "address": address,
        "kind": "form",
        "method": "POST",
        "path": action,
        "page": page,
    }
    for who in ("", "gus", "dora", "max", owner):
        case = f"form {who or 'nobody'} {action}"
        yield Planned(**base, case=case, visitor=who, body=kept | button)
    for project in (OLD, OFF) if "{project_path}" in action else ():
        case = f"form {owner} {action} {project}"
        yield Planned(**base, case=case, visitor=owner, project=project, body=kept | button)
    for name, value in others[:_MOST_BUTTONS]:
        case = f"form {owner} {action} {name}: {value}"
        yield Planned(**base, case=case, visitor=owner, body={**kept, name: value})
    yield Planned(**base, case=f"form as shown {action}", visitor=owner, body=dict(button))
    wrong = {**kept, **button, "csrf_token": "wrong"}
    yield Planned(**base, case=f"form forged {action}", visitor=owner, body=wrong)
    for name in list(names)[:_MOST_FIELDS]:
        for bad in BAD_OF_FORMS:
            body = {**kept, **button, name: bad}
            case = f"form {action} {name}={bad!r}"
            yield Planned(**base, case=case, visitor=owner, body=body)


def _of_commands(world: World, only: str) -> Iterator[Planned]:
    for path, command in _commands(world.app.cli, click.Context(world.app.cli), ()):
        address = f"gatebell {' '.join(path)}"
        if re.search(only, address):
            base: dict[str, Any] = {"address": address, "kind": "command"}
            yield Planned(**base, case="--help", words=(*path, "--help"))
            if not isinstance(command, click.Group) and not address.startswith(_LEFT_OUT):
                yield from _of_command(base, path, command)


def _of_command(
    base: dict[str, Any], path: tuple[str, ...], command: click.Command
) -> Iterator[Planned]:
    least, most, options = _words(command, base["address"])
    yield Planned(**base, case="no words", words=path)
    yield Planned(**base, case="least", words=(*path, *least))
    yield Planned(**base, case="most", words=(*path, *least, *most))
    yield Planned(**base, case="table", words=(*path, *least, "--output", "table"))
    for project in (OLD, OFF, "acme/none") if "{project_path}" in least else ():
        yield Planned(**base, case=project, project=project, words=(*path, *least))
    for option, value in options:
        words = (*path, *least, option)
        yield Planned(**base, case=option, words=(*words, value) if value else words)
        if value:
            yield Planned(**base, case=f"{option} bad", words=(*words, "\u2603 nonsense"))


_LEFT_OUT = tuple(f"gatebell {name}" for name in COMMANDS_LEFT_OUT)


def _commands(
    command: click.Command, context: click.Context, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if path:
        yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                inner = click.Context(found, parent=context, info_name=name)
                yield from _commands(found, inner, (*path, name))


def _words(
    command: click.Command, address: str
) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """Return the required words of a command, all its words, and each option with its value."""
    least: list[str] = []
    most: list[str] = []
    options = []
    for parameter in command.params:
        value = _word(parameter, address)
        if isinstance(parameter, click.Argument):
            least += [value]
        elif isinstance(parameter, click.Option) and not parameter.hidden:
            option = max(parameter.opts, key=len)
            if option in {"--output", "--help"}:
                continue
            words = [option] if parameter.is_flag else [option, value]
            if parameter.required or option == "--yes":
                least += words
            else:
                most += words
                options.append((option, "" if parameter.is_flag else value))
    return least, most, options


def _word(parameter: click.Parameter, address: str) -> str:
    name = parameter.name or ""
    if isinstance(parameter.type, click.Choice):
        return str(parameter.type.choices[0])
    shown = parameter.human_readable_name.lower()
    word = WORDS.get(name) or WORDS.get(shown) or good_word(name, address)
    if word is None and (name == "iid" or name.endswith("_id")):
        word = f"{{{name}}}"
    if name == "path":
        word = "acme" if "groups" in address else "{project_path}"
    if name == "path" and address.endswith("create"):
        word = "acme/recorded"
    return word or "3"


def filled(text: str, things: Mapping[str, str]) -> str:
    """Replace the placeholders in a text with objects of a project."""
    return re.sub(r"\{(\w+)\}", lambda found: things[found[1]], text)
