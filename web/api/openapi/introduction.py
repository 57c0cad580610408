"""Introduction to the API in the OpenAPI document, in Markdown."""

INTRODUCTION = """\
This API contains the operations that Gatebell offers to clients. The scopes of the token and the
role of its user determine what a request can do. Each operation lists its requirements.

- **Tokens**: send the token in the header `Authorization: Bearer …` or `PRIVATE-TOKEN: …`.
- **Administrators** also need the `admin_mode` scope. To act as another user, send a personal
access token with the `sudo` scope, and name the user in the `Sudo` header or the `sudo` parameter.
- **Lists** are paginated. Use `page` and `per_page` (at most 100) with the headers `X-Total` and
`X-Total-Pages`, or follow the link to the next page in the `Link` header. Lists that also exist in
GitLab accept the parameters in GitLab's documentation. They ignore unknown parameters, and list the
names in the `Gatebell-Ignored-Parameters` header. All other lists, such as alerts, reject unknown
parameters.
- **Bodies** are JSON objects or forms. Unknown fields are ignored, and listed in the same header.
- **ETag**: a GET request with `If-None-Match` returns 304 without a body if nothing has changed.
- **Times** are in UTC with milliseconds.
- **Errors** have the format `{"message": …}`, or `{"error": …}` for invalid parameters, with all
invalid fields of a body in `errors`. OAuth errors have the format of RFC 6749.
- **Releases**: send the `Platform-Release: 17.0` header to preview another release.
"""
