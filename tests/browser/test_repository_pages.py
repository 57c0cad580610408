"""Pages of repositories: axe finds nothing, nothing sticks out, and no README does harm."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.doors import have_signed_in
from tests.browser.looks import NASTY, problems_at
from tests.support.accounts.people import make_project, make_user
from tests.support.accounts.personal_tokens import make_token
from tests.support.git.client import GitClient
from tests.support.service.live import LiveGatebell

README = f"""# Shop

<script>document.title = "harmed"</script><img src=x onerror="document.title='harmed'">

{NASTY} ![badge](https://x.example/badge.svg)

## Use `it`

> quoted [link](docs/a.md)

1. one
2. two
   - three

| a very wide table | {"wide " * 40} |
|---|---|
| 1 | {"x" * 300} |

```sh
{"make everything " * 30}
```
"""


@pytest.mark.long
def test_nothing_is_wrong_with_pages_of_a_repository(
    live_sqlite: LiveGatebell, page: Page, tmp_path: Path
) -> None:
    alice = make_user(live_sqlite)
    full, empty = (make_project(live_sqlite, alice) for _ in range(2))
    token = make_token(live_sqlite, alice, scopes="write_repository").clear
    git = GitClient(gatebell=live_sqlite, home=tmp_path / "home", token=token)
    long = "a-name that is very long " * 8 + "x"
    files = {
        "README.md": README.encode(),
        "docs/a.md": b"# A\n",
        long: NASTY.encode(),
        "image": b"\x00\x01",
        "plain.txt": b"word\n" * 500,
    }
    work = git.new_work(files)
    git.commit(work, {"docs/b.md": b"b"}, message=NASTY)
    branch = "a-branch-with-a-long-name/" + "x" * 80
    git.do("-C", str(work), "branch", branch)
    assert git.push(work, full, "main", branch).status == 0
    have_signed_in(page, live_sqlite, alice)
    tree, blob = f"/{full}/-/tree", f"/{full}/-/blob"
    paths = (
        *(f"/{full}", f"/{empty}", tree, f"/{empty}/-/tree", f"{tree}/{branch}/docs"),
        *(f"{blob}/main/{name}" for name in ("plain.txt", "image", long)),
        f"/{full}/-/commits/main",
    )
    problems = [problem for path in paths for problem in problems_at(page, live_sqlite.url + path)]
    assert problems == []
    page.goto(f"{live_sqlite.url}/{full}")
    assert "harmed" not in page.title()
