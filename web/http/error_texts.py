"""Titles and advice for error pages."""

#: Title and advice by status.
ERROR_PAGE_TEXTS = {
    400: ("Bad request", "Go back, reload the page and try again."),
    403: ("Access denied", "Ask an owner for a higher role."),
    404: ("Page not found", "The page does not exist, or you do not have access."),
    405: ("Method not allowed", "Open the page from a link instead."),
    408: ("Request timeout", "Check your connection, then try again."),
    409: ("Change not possible", "Nothing was changed. Go back and reload the page."),
    410: ("No longer available", ""),
    413: ("Request too large", "Nothing was changed. Enter less text, or choose a smaller file."),
    414: (
        "URL too long",
        "Nothing was changed. If an application sent you here, contact its developers.",
    ),
    422: ("Invalid input", "Nothing was changed. Go back, correct the input and try again."),
    429: ("Too many requests", "Wait a few minutes, then try again."),
    500: (
        "Internal server error",
        "Nothing was changed. Try again; if the error persists, contact an administrator.",
    ),
    503: ("Service unavailable", "Try again in a moment; nothing was changed."),
}
#: Title and advice for a list request with unknown parameters.
INVALID_QUERY_TEXTS = ("Invalid list parameters", "Correct the URL, or clear the filters.")
#: Title and advice for a form with an expired or invalid CSRF token.
EXPIRED_FORM_TEXTS = (
    "This form has expired",
    "Nothing was changed. Go back, reload the page and try again.",
)
