"""Every kind of bad input that a receiver must survive, and the tests that show it.

A line names its tests by file and function; what is in brackets stands in that file's own table
of values. Whoever renames or removes one of them is told here.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

_BODIES = "http/test_intake_bad_input.py::test_what_is_no_json_object_is_refused_in_a_sentence"
_STRANGE = "http/test_intake_bad_input.py::test_an_alert_is_not_lost_over_what_is_strange_in_it"
_MANY_KEYS = (
    "http/test_intake_bad_input.py::test_a_hundred_thousand_names_are_read_or_refused_by_size_alone"
)
_SIZES = "http/test_intake_bodies.py"
_KEYS = (
    "http/test_intake.py"
    "::test_a_missing_or_wrong_key_is_refused_and_the_answer_says_how_to_send_one"
)
_GOOD_KEYS = (
    "http/test_intake.py::test_the_key_comes_as_a_bearer_token_or_as_a_password_without_a_user"
)
_FIELDS = "http/test_intake_fields.py"
_ANY_FIELD = (
    f"{_FIELDS}::test_a_generic_alert_takes_any_value_in_any_field",
    f"{_FIELDS}::test_a_webhook_takes_any_value_in_any_place_or_says_what_is_wrong",
)
_SHOWN = (
    f"{_FIELDS}::test_hostile_text_is_only_text_wherever_it_is_shown",
    "browser/test_alert_list.py::test_nothing_that_a_sender_writes_runs_or_leads_anywhere",
    "browser/test_hostile_payloads.py::test_the_delivery_log_and_the_pages_around_it",
    "browser/test_hostile_payloads.py::test_the_result_of_a_test_alert",
    "browser/test_hostile_payloads.py::test_the_sample_its_tree_its_preview_and_the_rehearsal",
)
_PARAMETERS = "http/test_page_parameters.py::test_a_nasty_value_is_taken_or_refused_in_words"

SHOWN_BY: Mapping[str, tuple[str, ...]] = {
    "an empty body": (f"{_BODIES}[nothing]", f"{_BODIES}[white space]"),
    "half an object": (f"{_BODIES}[half an object]",),
    "an array": (f"{_BODIES}[an array]",),
    "null": (f"{_BODIES}[null]",),
    "a bare string or number": (f"{_BODIES}[a string]", f"{_BODIES}[a number]"),
    "NaN and Infinity": (f"{_BODIES}[NaN]", f"{_BODIES}[Infinity]"),
    "1e400": (f"{_STRANGE}[a number too large]",),
    "integers beyond 64 bits": (f"{_STRANGE}[numbers beyond 64 bits]",),
    "duplicate keys": (f"{_STRANGE}[duplicate names]",),
    "a byte order mark": (f"{_STRANGE}[a byte order mark]",),
    "UTF-16": (f"{_BODIES}[UTF-16]", f"{_BODIES}[UTF-16 without a mark]"),
    "invalid UTF-8": (f"{_BODIES}[Latin-1]", f"{_BODIES}[an overlong form]"),
    "NUL": (f"{_BODIES}[a bare NUL]", f"{_STRANGE}[an escaped NUL]"),
    "lone surrogates": (f"{_STRANGE}[a lone surrogate]", f"{_BODIES}[a surrogate in UTF-8]"),
    "nesting 100,000 deep": (f"{_BODIES}[nested arrays]", f"{_BODIES}[nested objects]"),
    "100,000 keys": (_MANY_KEYS,),
    "at the size limit": (f"{_SIZES}::test_a_body_at_the_limit_is_kept_byte_for_byte",),
    "one byte over": (f"{_SIZES}::test_one_byte_more_is_refused",),
    "chunked without length": (f"{_SIZES}::test_a_body_of_unknown_length_has_the_same_limit",),
    "a lying Content-Length": (
        f"{_SIZES}::test_a_length_that_lies_is_a_bad_request",
        f"{_SIZES}::test_bytes_beyond_the_declared_length_are_not_part_of_the_alert",
        f"{_SIZES}::test_a_sender_that_hangs_up_half_way_has_sent_nothing",
    ),
    "a gzip bomb": (f"{_SIZES}::test_the_limit_is_the_same_after_unpacking",),
    "a wrong or missing content type": (
        "http/test_intake.py::test_anything_else_is_refused_with_a_sentence",
        "http/test_intake.py::test_a_body_that_does_not_say_its_type_is_refused",
    ),
    "no authorization, an empty one, Basic without colon, not ASCII": (_KEYS,),
    "two authorizations": ("http/test_intake_bad_input.py::test_two_authorizations_are_none",),
    "a scheme in lower case": (f"{_GOOD_KEYS}[bearer {{key}}]",),
    "titles, labels, hosts, severities, fingerprints, dates of every type and length": _ANY_FIELD,
    "script, Markdown, javascript links, right-to-left and zero-width text": _SHOWN,
    "format strings, SQL, Jinja in every field": _SHOWN,
    "the same in filter, sort and cursor": (
        _PARAMETERS,
        "http/test_alerts.py::test_search_finds_words_by_their_beginnings",
        "http/test_alert_lists.py::test_filters_leave_what_they_say",
        "http/test_every_parameter.py::test_every_parameter_of_every_endpoint_may_hold_anything",
    ),
    "forged cursors": (
        "http/test_alerts.py::test_a_forged_cursor_is_refused",
        "http/test_deliveries.py::test_a_forged_cursor_is_refused",
    ),
    "wrong methods": (
        "http/test_intake.py::test_another_method_is_refused_and_told_the_right_one",
    ),
    "path traversal, very long names": (
        "http/test_intake_bad_input.py::test_addresses_that_lead_nowhere_are_not_found",
    ),
    "whatever a machine thinks of": (
        "http/test_intake_bad_input.py::test_json_of_any_shape_is_stored_or_refused_in_a_sentence",
        "http/test_intake_bad_input.py::test_whatever_a_generic_alert_holds_it_is_kept",
        "http/test_intake_bad_input.py::test_whatever_a_metrics_webhook_holds_the_answer_is_clear",
        "domain/alerts/test_body.py::test_any_bytes_are_read_or_refused",
    ),
}


@pytest.mark.parametrize("line", SHOWN_BY)
def test_each_kind_of_bad_input_has_its_tests(line: str) -> None:
    for test in SHOWN_BY[line]:
        file, _, rest = test.partition("::")
        function, _, value = rest.removesuffix("]").partition("[")
        text = (TESTS / file).read_text(encoding="utf-8")
        assert f"def {function}(" in text, test
        assert not value or f'"{value}"' in text, test
