"""Inputs of consumers that are similar to breaking ones, but keep working."""

from collections.abc import Sequence

from tests.domain.releases.checker.examples import API, LINKS, STATUS, Example, har, log

DOWNLOAD = "https://github.com/docker/compose/releases/download/v2.0.0/docker-compose"

MISSES: Sequence[Example] = tuple(
    Example(change, name, content, ())
    for change, name, content in (
        ("release-links-external", "access.log", log(f"GET {LINKS}", f"POST {LINKS}")),
        ("release-links-external", "a.py", "import gitlab\nexternal = link.external"),
        ("release-links-external", "a.har", har({"url": f"https://gatebell.example{LINKS}"})),
        ("graphql-release-asset-link-external", "a.graphql", "{ issue { external } }"),
        ("operations-access-level", "a.py", "# operations_access_level\nx = 1"),
        ("operations-access-level", "a.txt", "We used operations_access_level here once."),
        (
            "merge-request-approvals",
            "access.log",
            log("GET /api/v4/projects/7/merge_requests/3/approvals"),
        ),
        (
            "merge-request-approvals",
            "access.log",
            log("POST /api/v4/projects/7/merge_requests/3/approve"),
        ),
        ("jobs-request-job-age", "requests.txt", "POST /api/v4/jobs/request token=x"),
        ("graphql-runner-status", "a.graphql", "{ runners(status: ONLINE) { nodes { id } } }"),
        ("legacy-page-urls", "access.log", log("GET /acme/shop/-/issues", "GET /acme/issues")),
        ("legacy-page-urls", "access.log", log("GET /acme/shop.git/info/refs?service=x")),
        ("legacy-page-urls", "access.log", log("POST /acme/shop/alerts/notify")),
        # Recorded responses, which are no requests.
        (
            "legacy-page-urls",
            "a.json",
            '[{"id": 7, "web_url": "https://gitlab.com/acme/shop/issues/3"}]',
        ),
        (
            "ci-job-token-scope-enabled",
            "a.json",
            '{"id": 7, "web_url": "x", "project": {"ci_job_token_scope_enabled": false}}',
        ),
        (
            "legacy-page-urls",
            "a.py",
            (
                'issue = {"id": 7, "web_url": "https://gitlab.com/acme/shop/issues/3"}\n'
                'Issue(web_url="https://gitlab.com/acme/shop/issues/3")'
            ),
        ),
        (
            "legacy-page-urls",
            "a.go",
            'issue := gitlab.Issue{WebURL: "https://gitlab.com/acme/shop/issues/3"}',
        ),
        ("legacy-page-urls", "a.har", har({"url": "https://github.com/acme/shop/issues"})),
        # Other services, in every kind of text with commands.
        ("legacy-page-urls", "a.sh", f"curl -LO {DOWNLOAD}"),
        ("legacy-page-urls", "Makefile", f"tools:\n\tcurl -LO {DOWNLOAD}"),
        ("legacy-page-urls", "a.yml", f"a:\n  script:\n    - curl -LO {DOWNLOAD}"),
        ("legacy-page-urls", "Dockerfile", f"RUN curl -LO {DOWNLOAD}"),
        ("legacy-page-urls", "requests.txt", f"GET {DOWNLOAD}"),
        ("users-offset-pagination", "a.sh", "curl https://mattermost.example/api/v4/users?page=2"),
        ("users-offset-pagination", "notes", "See https://api.github.com/api/v4/users?page=2."),
        (
            "runner-registration",
            "a.tf",
            (
                'resource "gitlab_user_runner" "a" {\n  runner_type = "x"\n}\n'
                'resource "other" "b" {\n  registration_token = var.token\n}\n'
            ),
        ),
        (
            "deployments-updated-at",
            "requests.txt",
            "GET /api/v4/projects/7/deployments?updated_after=x&order_by=updated_at",
        ),
        ("environment-search", "requests.txt", "GET /api/v4/projects/7/environments?search=pro"),
        ("external-status-length", "requests.txt", f"POST {STATUS} description={'x' * 255}"),
        ("tokens-without-expiry", "access.log", log("POST /api/v4/projects/7/access_tokens")),
        (
            "tokens-without-expiry",
            "a.py",
            (
                'import gitlab\nproject.access_tokens.create({"name": "x", "expires_at": day})\n'
                "project.access_tokens.create(data)"
            ),
        ),
        (
            "users-offset-pagination",
            "requests.txt",
            (
                "GET /api/v4/users?page=1\nGET /api/v4/users?username=a\nGET /api/v4/users\n"
                "GET /api/v4/projects?page=2\nGET /api/v4/users/7/projects?page=2\n"
                "GET /other/users?page=2"
            ),
        ),
        ("users-offset-pagination", "a.py", "import gitlab\nproject.users.list(page=2)"),
        ("users-offset-pagination", "a.py", 'requests.get("https://a.example/users?page=2")'),
        ("feature-flag-version", "a.py", "import gitlab\nversion = flag.version"),
        (
            "packages-pipelines",
            "a.py",
            "import gitlab\nfor p in project.packages.list():\n p.pipelines.list()",
        ),
        (
            "sign-in-text",
            "a.py",
            "class Form(Model):\n    help_text = Text()\n    sign_in_text = Text()",
        ),
        ("jwks-alias", "access.log", log("GET /oauth/discovery/keys")),
        (
            "ci-job-jwt",
            ".gitlab-ci.yml",
            "a:\n  script:\n    - echo $CI_JOB_JWT_TOKEN_PATH $MY_CI_JOB_JWT # $CI_JOB_JWT",
        ),
        (
            "graphql-token-types",
            "a.sh",
            'curl -H "Authorization: Bearer $T" https://a.example/api/graphql',
        ),
        (
            "runner-registration",
            "access.log",
            log("GET /api/v4/runners", "POST /api/v4/runners/verify"),
        ),
        (
            "graphql-runner-projects-sort",
            "a.graphql",
            "{ runner(id: 1) { projects(sort: ID_ASC) { nodes { id } } } }",
        ),
        ("graphql-runner-projects-sort", "a.graphql", "{ group { projects { nodes { id } } } }"),
        ("group-member-roles", "access.log", log("GET /api/v4/member_roles")),
        ("public-download-events", "a.py", 'kind = "public_repository_download_operation"'),
        ("tls-versions", "a.py", "context.minimum_version = ssl.TLSVersion.TLSv1_2"),
        ("tls-versions", "a.sh", f"curl --tlsv1.2 {API}/version"),
        (
            "ci-lint-ref",
            "requests.txt",
            "GET /api/v4/projects/7/ci/lint?content_ref=a\nPOST /api/v4/projects/7/ci/lint?ref=x",
        ),
        ("registry-tags-offset-pagination", "a.py", "import gitlab\nproject.tags.list(page=2)"),
        (
            "protected-variables-downstream",
            "a.yml",
            "a:\n  trigger:\n    forward:\n      pipeline_variables: false",
        ),
        (
            "graphql-runner-active",
            "a.graphql",
            "{ user { active } runners(paused: true) { nodes { paused } } }",
        ),
        (
            "notes-confidentiality",
            "requests.txt",
            "POST /api/v4/projects/7/issues/3/notes internal=true",
        ),
        (
            "notes-confidentiality",
            "a.graphql",
            "mutation { createNote(input: {internal: true}) { errors } }",
        ),
        ("api-rate-limits", "access.log", log(*["GET /api/v4/groups/7"] * 400)),
    )
)
