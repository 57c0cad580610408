"""Requests in the styles of real clients that docs/releases-checker.md counts."""

import pytest

from domain.releases.checker.text_checks import check_file


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        # Managers of python-gitlab have their path as a class attribute.
        (
            "a.py",
            'import gitlab\nclass Manager:\n    _path = "/groups/{group_id}/member_roles"\n',
            [("group-member-roles", 3)],
        ),
        ("a.py", 'import gitlab\nclass Manager:\n    _path = "/member_roles"\n', []),
        # They list the attributes of an update in a tuple.
        (
            "a.py",
            'import gitlab\n_update = RequiredOptional(optional=(\n    "sign_in_text",\n))\n',
            [("sign-in-text", 3)],
        ),
        # Functions of gitbeaker take a tagged template, and return a function that sends the
        # request.
        (
            "a.js",
            (
                "// @gitbeaker\nreturn RequestHelper.post()(\n  this,\n"
                "  endpoint`projects/${id}/feature_flags`,\n  { name, version, ...options },\n);"
            ),
            [("feature-flag-version", 4)],
        ),
        (
            "a.js",
            (
                "// @gitbeaker\nlet url;\nif (id) { url = endpoint`runners/${id}/reset`; }\n"
                'else { url = "runners/reset_registration_token"; }\n'
                "return RequestHelper.post()(this, url, options);"
            ),
            [
                ("instance-runners-reset-registration-token", 4),
                ("instance-runners-reset-registration-token", 5),
            ],
        ),
        (
            "a.js",
            (
                "// @gitbeaker\nlet u;\nurl = endpoint`projects/1/merge_requests/2/approvals`;\n"
                "return RequestHelper.get()(this, url, options);"
            ),
            [],
        ),
        # Types of TypeScript name the fields of requests and responses.
        (
            "a.d.ts",
            "// gitlab\ninterface Project { ci_job_token_scope_enabled?: boolean; id: number }",
            [("ci-job-token-scope-enabled", 2)],
        ),
    ],
)
def test_a_style_of_requests_is_recognized(
    name: str, content: str, found: list[tuple[str, int]]
) -> None:
    report = check_file(name, content.encode())
    assert [(each.change.id, each.line) for each in report.findings] == found
