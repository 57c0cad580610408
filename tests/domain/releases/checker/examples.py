"""Inputs of consumers, by the change that breaks them; near_misses.py has the others."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple


class Example(NamedTuple):
    """A text with the numbers of its breaking lines; a near miss has none."""

    change: str
    name: str
    content: str
    lines: tuple[int, ...]


def har(*requests: dict[str, Any]) -> str:
    """Return a HAR file as browsers write it, with one entry per line."""
    entries = [
        {
            "startedDateTime": each.pop("at", "2026-01-01T00:00:00.000Z"),
            "request": {"method": each.pop("method", "GET"), "headers": [], **each},
            "response": {"status": 200, "content": {"text": '{"external": true}'}},
        }
        for each in requests
    ]
    return json.dumps({"log": {"version": "1.2", "entries": entries}}, indent=1)


def line_of(content: str, text: str) -> int:
    """Return the number of the first line with a text."""
    return content[: content.index(text)].count("\n") + 1


def log(*lines: str) -> str:
    """Return an access log in the combined format."""
    return "\n".join(
        f'192.0.2.7 - - [10/Oct/2026:13:55:36 +0000] "{each} HTTP/1.1" 200 12 "-" "x/1.0"'
        for each in lines
    )


API = "https://gatebell.example/api/v4"
PUT_PROJECT = "/api/v4/projects/7"
LINKS = "/api/v4/projects/7/releases/v1/assets/links"
STATUS = "/api/v4/projects/7/statuses/0123456789abcdef0123456789abcdef01234567"
BUSY = "\n".join(log("GET /api/v4/groups/7") for _ in range(500))

BREAKS: Sequence[Example] = (
    Example("jwks-alias", "a.sh", 'curl $URL/-/jwks\ncurl "${BASE}/-/jwks"', (1, 2)),
    Example(
        "jwks-alias", "b.sh", "vault write auth/jwt/config jwks_url=https://g.example/-/jwks", (1,)
    ),
    Example("jwks-alias", "a.yml", "jwt:\n  jwks_url: https://g.example/-/jwks\n", (2,)),
    Example(
        "users-offset-pagination",
        "format.go",
        (
            'url := fmt.Sprintf("%s/api/v4/users?page=%d", base, page)\n'
            'req, err := http.NewRequest("GET", url, nil)\n'
            "req, err = http.NewRequestWithContext(ctx,\n"
            '\t"GET", fmt.Sprintf("%s/api/v4/users?page=%d", base, page), nil)\n'
        ),
        (2, 4),
    ),
    Example(
        "users-offset-pagination", "a.py", 'gl.http_get("/users", query_data={"page": 2})', (1,)
    ),
    Example(
        "runner-registration",
        "runner.tf",
        (
            'resource "gitlab_runner" "this" {\n'
            '  description = "${var.name}"\n'
            "  registration_token = var.token\n"
            "}\n"
        ),
        (3,),
    ),
    Example(
        "runner-registration",
        "playbook.yml",
        "- community.general.gitlab_runner:\n    registration_token: x\n",
        (2,),
    ),
    Example("release-links-external", "requests.txt", f"POST {LINKS} external=true", (1,)),
    Example(
        "release-links-external",
        "links.py",
        "import gitlab\n"
        "for link in release.links.list():\n"
        "    print(link.url)\n"
        "    print(link.external)\n",
        (4,),
    ),
    Example(
        "release-links-external",
        "links.py",
        'url = base + "/api/v4/projects/" + number + "/releases/v1/assets/links"\n'
        "links = requests.get(url).json()\n"
        'inside = [link["external"] for link in links]\n',
        (3,),
    ),
    Example(
        "graphql-release-asset-link-external",
        "release.graphql",
        "query { project(fullPath: $path) { release(tagName: $tag) {\n"
        "  assets { links { nodes {\n    external\n  } } }\n} } }",
        (3,),
    ),
    Example(
        "operations-access-level",
        "requests.txt",
        f'PUT {PUT_PROJECT} {{"operations_access_level": "private"}}',
        (1,),
    ),
    Example("operations-access-level", "a.py", 'project.operations_access_level = "private"', (1,)),
    Example("operations-access-level", "a.ts", "api.edit(1, {\n operationsAccessLevel: l })", (2,)),
    Example(
        "merge-request-approvals",
        "access.log",
        log("POST /api/v4/projects/7/merge_requests/3/approvals"),
        (1,),
    ),
    Example(
        "jobs-request-job-age", "a.http", 'POST /api/v4/jobs/request\n\n{"job_age": 3600}', (1,)
    ),
    Example(
        "graphql-runner-status", "a.gql", "{ runners(\n  status: PAUSED) { nodes { id } } }", (2,)
    ),
    Example("legacy-page-urls", "access.log", log("GET /acme/shop/issues/3"), (1,)),
    Example(
        "deployments-updated-at",
        "requests.txt",
        "GET /api/v4/projects/7/deployments?updated_after=2026-01-01",
        (1,),
    ),
    Example(
        "deployments-updated-at",
        "a.py",
        "import gitlab\nproject.deployments.list(updated_after=day)",
        (2,),
    ),
    Example(
        "environment-search", "requests.txt", "GET /api/v4/projects/7/environments?search=pr", (1,)
    ),
    Example(
        "environment-search",
        "a.js",
        'import { Gitlab } from "@gitbeaker/rest";\n'
        'await api.Environments.all(7, { search: "pr" });',
        (2,),
    ),
    Example(
        "external-status-length",
        "requests.txt",
        f"POST {STATUS} state=success&description={'x' * 256}",
        (1,),
    ),
    Example(
        "tokens-without-expiry",
        "a.sh",
        f'curl --data "name=ci&scopes[]=api" \\\n  "{API}/projects/7/access_tokens"',
        (2,),
    ),
    Example(
        "user-email-lookup-limit",
        "requests.txt",
        "PUT /api/v4/application/settings user_email_lookup_limit=60",
        (1,),
    ),
    Example("users-offset-pagination", "requests.txt", "\nGET /api/v4/users?page=2\n", (2,)),
    Example("users-offset-pagination", "a.sh", f"curl -G {API}/users -d page=2", (1,)),
    Example(
        "users-offset-pagination",
        "a.py",
        "import gitlab\ngl.users.list(page=1)\ngl.users.list(page=number)",
        (3,),
    ),
    Example(
        "users-offset-pagination",
        "a.js",
        "// gitlab\nconst users = await api.Users.all({ perPage: 50, page: 3 });",
        (2,),
    ),
    Example(
        "users-offset-pagination",
        "a.js",
        "const query = { page };\nfetch(`${base}/api/v4/users?page=${page}`)",
        (2,),
    ),
    Example(
        "ci-job-token-scope-enabled", "a.rb", "project[:ci_job_token_scope_enabled] = false", (1,)
    ),
    Example(
        "feature-flag-version",
        "a.sh",
        f'curl {API}/projects/7/feature_flags --json \'{{"version": "x"}}\'',
        (1,),
    ),
    Example(
        "packages-pipelines",
        "a.py",
        'packages = client.get("/api/v4/projects/7/packages").json()\n'
        "for package in packages:\n"
        '    print(package["pipelines"][0]["id"])\n',
        (3,),
    ),
    Example("sign-in-text", "a.py", 'import gitlab\nsettings.sign_in_text = "Hello"', (2,)),
    Example(
        "sign-in-text",
        "requests.txt",
        'PUT /api/v4/application/settings {"help_text": "Hello"}',
        (1,),
    ),
    Example("jwks-alias", "access.log", log("GET /-/jwks"), (1,)),
    Example("jwks-alias", "a.go", 'keys, err := http.Get(issuer + "/-/jwks")', (1,)),
    Example(
        "ci-job-jwt",
        ".gitlab-ci.yml",
        "read:\n  script:\n    - vault login jwt=$CI_JOB_JWT_V2\n",
        (3,),
    ),
    Example("ci-job-jwt", "a.py", 'token = os.environ["CI_JOB_JWT"]', (1,)),
    Example(
        "graphql-token-types",
        "a.sh",
        'curl -H "Deploy-Token: $T" --json @q.json https://gatebell.example/api/graphql',
        (1,),
    ),
    Example("runner-registration", "access.log", log("POST /api/v4/runners"), (1,)),
    Example(
        "runner-registration", "a.sh", f'curl --request POST "{API}/runners" --form token=x', (1,)
    ),
    Example(
        "graphql-runner-projects-sort",
        "a.js",
        "const read = gql`\n query { runner(id: $id) {\n  projects { nodes { id } }\n } }\n`;",
        (3,),
    ),
    Example("group-member-roles", "access.log", log("GET /api/v4/groups/7/member_roles"), (1,)),
    Example(
        "public-download-events",
        "a.py",
        'if event["event_name"] == "repository_download_operation":\n    count()',
        (1,),
    ),
    Example("tls-versions", "a.py", "context = ssl.SSLContext(ssl.PROTOCOL_TLSv1_1)", (1,)),
    Example("tls-versions", "a.sh", f"curl --tls-max 1.1 {API}/version", (1,)),
    Example("ci-lint-ref", "requests.txt", "GET /api/v4/projects/7/ci/lint?ref=main", (1,)),
    Example(
        "instance-runners-reset-registration-token",
        "access.log",
        log("POST /api/v4/runners/reset_registration_token"),
        (1,),
    ),
    Example(
        "project-runners-reset-registration-token",
        ".gitlab-ci.yml",
        "reset:\n  script:\n    - |\n      date\n"
        '      curl -X POST "$CI_API_V4_URL/projects/7/runners/reset_registration_token"\n',
        (5,),
    ),
    Example(
        "group-runners-reset-registration-token",
        "access.log",
        log("POST /api/v4/groups/7/runners/reset_registration_token"),
        (1,),
    ),
    Example(
        "registry-tags-offset-pagination",
        "requests.txt",
        "GET /api/v4/projects/7/registry/repositories/3/tags?page=2",
        (1,),
    ),
    Example(
        "registry-tags-offset-pagination",
        "a.py",
        "import gitlab\n"
        "for repository in project.repositories.list():\n"
        "    repository.tags.list(page=2)\n",
        (3,),
    ),
    Example(
        "require-password-to-approve",
        "requests.txt",
        "POST /api/v4/projects/7/approvals require_password_to_approve=true",
        (1,),
    ),
    Example(
        "dependency-proxy-scopes",
        ".gitlab-ci.yml",
        "login:\n  script:\n    - docker login -u me -p $PAT $CI_DEPENDENCY_PROXY_SERVER\n",
        (3,),
    ),
    Example(
        "protected-variables-downstream",
        ".gitlab-ci.yml",
        "deploy:\n  trigger:\n    project: a/b\n    forward:\n      pipeline_variables: true\n",
        (5,),
    ),
    Example(
        "graphql-runner-active", "a.graphql", "{ runners { nodes {\n  id\n  active\n} } }", (3,)
    ),
    Example(
        "graphql-previous-stage-jobs-or-needs",
        "a.graphql",
        "{ job(id: 1) {\n previousStageJobsOrNeeds { nodes { id } } } }",
        (2,),
    ),
    Example("graphql-add-on-purchase", "a.graphql", "{\n addOnPurchase { id } }", (2,)),
    Example(
        "graphql-runner-setup",
        "a.graphql",
        "{ runnerPlatforms { nodes { name } }\n runnerSetup(platform: $p) { installed } }",
        (1, 2),
    ),
    Example(
        "notes-confidentiality",
        "a.sh",
        f"curl -X PUT {API}/projects/7/issues/3/notes/9 -d confidential=true",
        (1,),
    ),
    Example(
        "notes-confidentiality",
        "a.graphql",
        "mutation {\n updateNote(input: {\n  id: 1, confidential: true }) { errors } }",
        (3,),
    ),
    Example("api-rate-limits", "access.log", BUSY, (401,)),
)
