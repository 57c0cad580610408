"""Requests as clients in many languages write them, in own words: breaking ones and similar ones.

`breaks` contains the lines that a person would mark. The checker does not find the lines in
`missed`; docs/releases-checker.md explains the reasons.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Shape(NamedTuple):
    """A file of a client."""

    name: str
    content: str
    #: Changes by line, as a reader of the file finds them.
    breaks: Mapping[int, str] = {}
    #: Lines of `breaks` that the checker misses.
    missed: frozenset[int] = frozenset()


RUNNER, USERS = "runner-registration", "users-offset-pagination"
LINKS, PACKAGES = "release-links-external", "packages-pipelines"
TOKENS, PAGES, FLAGS = "tokens-without-expiry", "legacy-page-urls", "feature-flag-version"

SHAPES: Sequence[Shape] = (
    # PHP joins texts with dots, and functions return the beginning of a path.
    Shape(
        "Projects.php",
        "<?php // client of gitlab\n"
        "$this->post('projects/'.self::encode($id).'/runners', ['runner_id' => $runner]);\n"
        "$this->post($this->pathOf($id, 'runners'), ['runner_id' => $runner, 'active' => true]);\n"
        "$this->get('projects/' . $id . '/users', ['page' => 2]);\n",
    ),
    Shape(
        "Runners.php",
        "<?php // client of gitlab\n"
        "$this->post('runners', ['token' => $token]);\n"
        "$this->get('users', ['page' => 2]);\n"
        "return $this->delete('groups/' . $id . '/member_roles/' . $role);\n",
        {2: RUNNER, 3: USERS, 4: "group-member-roles"},
    ),
    # gitlab4j passes path segments.
    Shape(
        "RunnersApi.java",
        "// org.gitlab4j\n"
        'post(Status.CREATED, form.asMap(), "projects", pathOf(id), "runners");\n'
        'post(Status.CREATED, form.asMap(), "runners");\n'
        'post(Status.CREATED, form, "runners", "verify");\n'
        'get(Status.OK, page(2), "projects", pathOf(id), "users");\n'
        'delete(Status.OK, null, "groups", pathOf(id), "member_roles", role);\n',
        {3: RUNNER, 6: "group-member-roles"},
    ),
    Shape(
        "Users.java",
        '// org.gitlab4j\nform.withParam("page", 2);\nget(Status.OK, form.asMap(), "users");\n',
        {3: USERS},
        frozenset({3}),
    ),
    Shape(
        "client.rb",
        "# gitlab\n"
        "post('/runners', body: { token: token })\n"
        'post("/projects/#{url_encode id}/runners", body: { runner_id: runner })\n'
        'get("/users", query: { page: 3 })\n',
        {2: RUNNER, 4: USERS},
    ),
    Shape(
        "runners.go",
        "package gitlab\n"
        'request, err := s.client.NewRequest(http.MethodPost, "runners", options, nil)\n'
        'path := fmt.Sprintf("projects/%s/runners", PathEscape(project))\n'
        "request, err := s.client.NewRequest(http.MethodPost, path, options, nil)\n"
        'request, err := s.client.NewRequest(http.MethodGet, "runners", options, nil)\n',
        {2: RUNNER},
    ),
    # Options of Go's clients are structs, whose fields are not followed.
    Shape(
        "users.go",
        "package main // gitlab\n"
        "options := &gitlab.ListUsersOptions{Page: 2}\n"
        "users, _, err := client.Users.ListUsers(options)\n",
        {3: USERS},
        frozenset({3}),
    ),
    Shape(
        "Client.cs",
        "// GitLab\n"
        'await http.PostAsync($"{root}/api/v4/runners", form);\n'
        'await http.GetAsync($"{root}/api/v4/projects/{id}/runners");\n',
        {2: RUNNER},
        frozenset({2}),
    ),
    Shape(
        "client.py",
        "import gitlab\n"
        "gl.runners.create({'token': token})\n"
        "project.runners.create({'runner_id': runner.id})\n"
        "gl.users.list(page=2)\n"
        "project.users.list(page=2)\n"
        "for package in project.packages.list(all=True):\n"
        "    package.pipelines.list()\n"
        "    print(package.pipelines[0])\n",
        {2: RUNNER, 4: USERS, 8: PACKAGES},
    ),
    Shape(
        "session.py",
        "session.headers['PRIVATE-TOKEN'] = token\n"
        "session.post(f'{base}/projects/{number}/runners', data={'runner_id': 7})\n"
        "session.get(urljoin(base, 'users'), params={'page': 2})\n"
        "session.post(f'{base}/projects/{number}/access_tokens', json={'name': 'ci'})\n",
        {3: USERS, 4: TOKENS},
    ),
    Shape(
        "client.ts",
        "// gitlab\n"
        "await api.post(`projects/${id}/runners`, { runner_id: 7 });\n"
        "await api.get('users', { searchParams: { page: 2 } });\n"
        "const users = t('users', 'page');\n",
        {3: USERS},
    ),
    # The returned function sends the request.
    Shape(
        "roles.js",
        "// @gitbeaker\n"
        "return helper.del()(this, endpoint`groups/${id}/member_roles/${role}`, options);\n"
        "return helper.make()(this, endpoint`groups/${id}/member_roles`, options);\n",
        {2: "group-member-roles", 3: "group-member-roles"},
    ),
    Shape(
        "api.pl",
        '# gitlab\n$self->_call("POST", "projects/$id/runners", { runner_id => 7 });\n',
    ),
    # gitlab-runner registers with the API.
    Shape(
        ".gitlab-ci.yml",
        "register:\n"
        "  script:\n"
        "    - gitlab-runner register -n --url $URL --registration-token $TOKEN\n"
        "    - gitlab-runner register -n --url $URL --token $AUTHENTICATION_TOKEN\n"
        "    - gitlab-runner unregister --all-runners\n"
        "    - |\n"
        "      docker run --rm gitlab/gitlab-runner:alpine register \\\n"
        "        --non-interactive \\\n"
        '        -r "$TOKEN"\n',
        {3: RUNNER, 9: RUNNER},
    ),
    Shape(
        "register.sh",
        "REGISTRATION_TOKEN=$T sudo -E gitlab-runner register -n\n"
        "ssh ci sudo gitlab-runner register --registration-token=$T\n"
        "gitlab-runner register --help\n"
        "rm -r build # gitlab-runner register -r\n",
        {1: RUNNER, 2: RUNNER},
    ),
    Shape(
        "register.py",
        "subprocess.run(['gitlab-runner', 'register', '--registration-token', token])\n",
        {1: RUNNER},
    ),
    # Another line exports the token as an environment variable.
    Shape(
        "export.sh",
        "export REGISTRATION_TOKEN=$T\ngitlab-runner register --non-interactive\n",
        {2: RUNNER},
        frozenset({2}),
    ),
    # Responses go through a filter.
    Shape(
        "release.sh",
        "curl -s \"$CI_API_V4_URL/projects/7/releases/v1\" | jq -r '.assets.links[].external'\n"
        'x=$(curl -s "$CI_API_V4_URL/projects/7/packages" | jq -r ".[0].pipelines[0].id")\n'
        'curl -s "$CI_API_V4_URL/projects/7/releases/v1" |\n'
        "  jq '.assets.links[] | select(.external) | .url'\n"
        'curl -s "$CI_API_V4_URL/projects/7/issues" | jq ".[].external"\n'
        'curl -s "$CI_API_V4_URL/projects/7/releases/v1" | jq .name; jq .external other.json\n'
        "glab api projects/7/feature_flags | jq '.[] | {name, version}'\n",
        {1: LINKS, 2: PACKAGES, 4: LINKS, 7: FLAGS},
    ),
    Shape(
        "saved.sh",
        'curl -s -o r.json "$CI_API_V4_URL/projects/7/releases/v1"\n'
        "jq '.assets.links[].external' r.json\n",
        {2: LINKS},
        frozenset({2}),
    ),
    # Recorded responses and other data are no requests.
    Shape(
        "fixtures/project.json",
        '{"id": 7, "web_url": "https://gitlab.com/acme/shop",\n'
        ' "ci_job_token_scope_enabled": false,\n'
        ' "_links": {"issues": "https://gitlab.com/api/v4/users?page=2"}}\n',
    ),
    Shape(
        "fixtures/users.json",
        '{"response": {"headers": {"Link": "<https://gitlab.com/api/v4/users?page=2>"},\n'
        '  "body": [{"external": true, "url": "https://gitlab.com/acme/shop/issues/3"}]}}\n',
    ),
    Shape("fixtures/settings.json", '{"id": 1, "sign_in_text": "Hello", "help_text": null}\n'),
    Shape("fixtures/hook.json", '{"project": {"operations_access_level": "enabled"}}\n'),
    # These files declare that they are sent.
    Shape(
        "body.json", '{\n "operations_access_level": "private"\n}\n', {2: "operations-access-level"}
    ),
    Shape(
        "graphql.json",
        '{"query": "{ runnerPlatforms { nodes { name } } }"}',
        {1: "graphql-runner-setup"},
    ),
    Shape(
        "postman.json",
        '{"item": [{"name": "Users", "request": {\n'
        '  "method": "GET",\n'
        '  "url": {"raw": "https://gate.example/api/v4/users?page=2"}},\n'
        '  "response": [{"body": "/api/v4/users?page=3"}]}]}\n',
        {3: USERS},
    ),
    Shape(
        "mapping.json",
        '{"request": {"method": "POST", "urlPath": "/api/v4/runners",\n'
        '  "body": {"token": "x"}}, "response": {"jsonBody": {"url": "/api/v4/runners"}}}\n',
        {1: RUNNER},
    ),
    Shape(
        "package.json",
        '{"scripts": {\n  "users": "curl https://gate.example/api/v4/users?page=2"\n}}\n',
        {2: USERS},
    ),
)
