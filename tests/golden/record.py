"""Records the responses of a checkout: `python -m tests.golden.record <checkout> <folder>`.

`--like <folder>` sends the requests of another recording, and in addition those to addresses that
it does not know. `--only <expression>` records only addresses that match it. The checkout runs on
the libraries of this one. `python -m tests.golden.compare <folder> <folder>` compares.
"""

import argparse
import gzip
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from tests.golden.answers import Normalizer
from tests.golden.furnish import Furnisher
from tests.golden.plan import Planned, filled, from_json, planned, to_json
from tests.golden.values import GOOD
from tests.golden.world import PASSWORD, SHOP, World
from tests.support.wire.html_forms import forms_in

#: Parts of a response that are compared by lines.
_TEXTS = {"body", "out", "err"}
_SAMPLED = re.compile(r"notify|/v2/|/-/ping|/oauth/")
_ANSWERS, _PLAN = "answers.jsonl.gz", "plan.json"


class Recorder:
    """Sends the requests of a plan in a world."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        sample = folder / "sample.json"
        sample.write_text(str(GOOD["sample"]), encoding="utf-8")
        for things in world.things.values():
            things |= {
                "password": PASSWORD,
                "olga_token": world.tokens["olga"],
                "folder": str(folder / "written"),
                "sample_file": str(sample),
                "project_reference": things["project_path"].replace("/", "%2F"),
            }
        self._normaliser = Normalizer(str(folder))

    def record(self, plan: list[Planned]) -> Iterator[dict[str, Any]]:
        """Yield the outcome of each request."""
        address = ""
        for each in plan:
            # The application samples errors, so the next address needs a new one.
            if each.address != address and _SAMPLED.search(each.address):
                self._world.new_app()
            address = each.address
            yield {"key": each.key, "address": each.address, **self._answered(each)}

    def _answered(self, each: Planned) -> dict[str, Any]:
        things = self._world.things.get(each.project)
        if things is None:
            things = self._world.things[SHOP] | {"project_path": each.project}
        try:
            answer = self._outcome(each, self._filler(things))
        except KeyError as error:
            return {"unknown": str(error)}
        except Exception as error:  # noqa: BLE001 - recorded, to be compared
            answer = {"raised": f"{type(error).__name__}: {error}"}
        happened = self._world.happened()
        done = {"events": happened.events, "rows": happened.rows}
        answer |= {name: value for name, value in done.items() if value}
        return {
            name: _lines(value) if name in _TEXTS else value
            for name, value in self._normaliser.normalized(answer).items()
        }

    @staticmethod
    def _filler(things: dict[str, str]) -> Any:
        def fill(value: Any) -> Any:
            if isinstance(value, str):
                return filled(value, things) if "{" in value and '"' not in value else value
            if isinstance(value, dict):
                return {name: fill(inner) for name, inner in value.items()}
            return [fill(inner) for inner in value] if isinstance(value, list) else value

        return fill

    def _outcome(self, each: Planned, fill: Any) -> dict[str, Any]:
        if each.kind == "command":
            done = self._world.run(*(fill(word) for word in each.words))
            return {"status": done.exit_code, "out": done.stdout, "err": done.stderr}
        if each.kind == "form":
            answer = self._submitted(each, fill)
        else:
            options = self._options(each, fill)
            answer = self._world.send(each.method, fill(each.path), **options)
        return self._normaliser.read(answer)

    def _options(self, each: Planned, fill: Any) -> dict[str, Any]:
        headers = fill(each.headers)
        options: dict[str, Any] = {"headers": headers}
        if each.kind == "api" and each.visitor:
            headers["PRIVATE-TOKEN"] = self._world.tokens[each.visitor]
        elif each.visitor:
            options["cookies"] = dict(self._world.cookies[each.visitor])
        body = each.body or {}
        if "json" in body:
            options["json"] = fill(body["json"])
        elif "form" in body:
            options["data"] = fill(body["form"])
        elif "text" in body:
            options["data"] = body["text"]
        return options

    def _submitted(self, each: Planned, fill: Any) -> Any:
        """Submit a form as a browser does, or the same fields if the page is not available."""
        cookies = dict(self._world.cookies[each.visitor]) if each.visitor else {}
        page = self._world.send("GET", fill(each.page), cookies=cookies)
        action, values = fill(each.path), fill(each.body)
        forms = forms_in(page.text) if page.mimetype == "text/html" else []
        own = [
            form
            for form in forms
            if form.method == "post" and (urlsplit(form.action).path or fill(each.page)) == action
        ]
        if own:
            sent = own[0].filled(**values)
        else:
            anywhere = self._world.send("GET", "/-/user_settings/profile", cookies=cookies)
            shown = [form for form in forms_in(anywhere.text) if form.has("csrf_token")]
            token = shown[0].value("csrf_token") if shown else ""
            sent = list({"csrf_token": token, **values}.items())
        data: dict[str, list[str]] = {}
        for name, value in sent:
            data.setdefault(name, []).append(value)
        return self._world.send("POST", action, cookies=cookies, data=data)


def _lines(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    lines = (line.strip() for line in value.splitlines())
    return [line for line in lines if line]


def main() -> None:
    """Record a checkout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--like", type=Path)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    folder, like = given.folder.resolve(), given.like and given.like.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.CRITICAL)
    with TemporaryDirectory(prefix="recorded") as instance:
        world = World(given.checkout.resolve(), Path(instance))
        Furnisher(world).furnish()
        world.keep()
        recorder = Recorder(world, Path(instance))
        plan = planned(world, given.only)
        if like:
            kept = from_json((like / _PLAN).read_text(encoding="utf-8"))
            known = {each.address for each in kept}
            plan = [each for each in plan if each.address not in known] + kept
        plan.sort(key=lambda each: each.address)
        (folder / _PLAN).write_text(to_json(plan), encoding="utf-8")
        sys.stderr.write(f"{len(plan)} requests\n")
        with gzip.open(folder / _ANSWERS, "wt", encoding="utf-8", compresslevel=3) as file:
            for number, answer in enumerate(recorder.record(plan)):
                file.write(json.dumps(answer, ensure_ascii=False, sort_keys=True) + "\n")
                if number % 500 == 0:
                    sys.stderr.write(f"{number} {answer['address']}\n")


if __name__ == "__main__":
    main()
