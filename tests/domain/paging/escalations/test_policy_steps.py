"""Steps of escalation policies in the format of commands."""

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists, sampled_from, text, tuples

from domain.core.durations import format_duration_words
from domain.core.errors import InvalidError
from domain.paging.escalations.policy_steps import (
    EscalationPlan,
    NamedStep,
    NamedTarget,
    Step,
    Target,
    TargetKind,
    check_plan,
    format_repeats,
    format_step,
    parse_step,
    parse_stored_steps,
    serialize_steps,
)

USER, SCHEDULE, CHANNEL = TargetKind.USER, TargetKind.SCHEDULE, TargetKind.CHANNEL


@pytest.mark.parametrize(
    ("written", "seconds", "targets"),
    [
        ("0s user:alice", 0, [(USER, "alice")]),
        ("5m schedule:primary", 300, [(SCHEDULE, "primary")]),
        (" 1h30m  user:@alice,channel:ops ", 5400, [(USER, "alice"), (CHANNEL, "ops")]),
        (
            "5m schedule:Data centre, Oslo user:bob",
            300,
            [(SCHEDULE, "Data centre, Oslo"), (USER, "bob")],
        ),
        ("5m", 300, []),
    ],
)
def test_a_step_is_parsed(
    written: str, seconds: int, targets: list[tuple[TargetKind, str]]
) -> None:
    named = tuple(NamedTarget(kind, name) for kind, name in targets)
    assert parse_step(written) == NamedStep(timedelta(seconds=seconds), named)


@pytest.mark.parametrize(
    "written", ["", "alice", "user:alice", "5m alice", "5m user:", "-1s user:a"]
)
def test_other_texts_are_rejected(written: str) -> None:
    with pytest.raises(InvalidError) as refused:
        parse_step(written)
    assert refused.value.field == "steps"


@pytest.mark.long
@given(text())
def test_any_text_is_parsed_or_rejected(written: str) -> None:
    with suppress(InvalidError):
        parse_step(written)


def step(seconds: int, *ids: int) -> Step:
    return Step(timedelta(seconds=seconds), tuple(Target(USER, each) for each in ids or (1,)))


@pytest.mark.parametrize(
    ("steps", "options"),
    [
        ((), {}),
        ((step(1),) * 21, {}),
        ((step(5), step(4)), {}),
        ((step(86_401),), {}),
        ((Step(timedelta(), ()),), {}),
        ((step(0, *range(1, 22)),), {}),
        ((step(0),), {"repeats": 10}),
        ((step(0),), {"repeats": -1}),
        ((step(0),), {"pause": timedelta(seconds=59)}),
        ((step(0),), {"pause": timedelta(hours=25)}),
    ],
)
def test_an_impossible_plan_is_rejected(
    steps: tuple[Step, ...], options: dict[str, object]
) -> None:
    with pytest.raises(InvalidError):
        check_plan(EscalationPlan(steps, **options))  # type: ignore[arg-type]


@pytest.mark.long
@given(
    lists(
        tuples(integers(0, 86_400), lists(tuples(sampled_from(TargetKind), integers(1, 2**40)))),
        max_size=5,
    )
)
def test_stored_steps_are_loaded_unchanged(
    given_steps: list[tuple[int, list[tuple[TargetKind, int]]]],
) -> None:
    steps = tuple(
        Step(timedelta(seconds=after), tuple(Target(*each) for each in targets))
        for after, targets in given_steps
    )
    assert parse_stored_steps(serialize_steps(steps)) == steps


def test_steps_are_described_in_words() -> None:
    assert format_step(timedelta(), ["@alice"]) == "Immediately: @alice."
    assert format_step(timedelta(seconds=90), ["a", "b", "c"]) == "After 1 min 30 s: a, b and c."
    assert format_duration_words(timedelta(days=1, minutes=5)) == "1 d 5 min"
    assert format_duration_words(timedelta()) == "0 s"
    assert format_step(timedelta(), []) == "Immediately: nobody."
    assert format_repeats(1, timedelta(hours=1)) == "Repeats once, 1 h after the last step."
