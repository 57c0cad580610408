"""Writes what came of a soak."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from bench.soaking.watch import Look, Use

_PARTS = 5


def growth(looks: Sequence[Look], pid: int) -> float:
    """Return how many MiB an hour a process grew by after the first fifth, when all is warm."""
    warm = list(_of(looks, pid))[len(looks) // _PARTS :]
    if len(warm) < 2:  # noqa: PLR2004 - two make a line
        return 0.0
    (begin, first), (end, last) = warm[0], warm[-1]
    return (last.resident_mib - first.resident_mib) / max(end - begin, 1.0) * 3600


def as_markdown(title: str, looks: Sequence[Look], answers: Mapping[str, Counter[str]]) -> str:
    """Return the tables."""
    parts = [f"# {title}\n\n## Processes\n\n", *_processes(looks)]
    parts += ["\n## Tables, in MiB\n\n", *_tables(looks)]
    connections = [each.connections for each in looks]
    parts.append(f"\nConnections to the database: {connections[0]} to {max(connections)}.\n")
    parts += ["\n## Answers\n\n", *_answers(answers)]
    return "".join(parts)


def _processes(looks: Sequence[Look]) -> Iterator[str]:
    marks = [looks[round(part * (len(looks) - 1) / _PARTS)] for part in range(_PARTS + 1)]
    head = [f"{each.seconds / 60:.0f} min" for each in marks]
    yield f"| process | {' | '.join(head)} | MiB an hour | descriptors | threads |\n"
    yield f"|---|{'--:|' * (len(head) + 3)}\n"
    for pid in sorted({pid for each in looks for pid in each.processes}):
        seen = [use for _, use in _of(looks, pid)]
        sizes = [_size(each.processes.get(pid)) for each in marks]
        yield (
            f"| {seen[0].name} {pid} | {' | '.join(sizes)} | {growth(looks, pid):+.1f} |"
            f" {seen[0].descriptors} to {seen[-1].descriptors} |"
            f" {seen[0].threads} to {seen[-1].threads} |\n"
        )


def _size(use: Use | None) -> str:
    return f"{use.resident_mib:.1f}" if use else "gone"


def _of(looks: Sequence[Look], pid: int) -> Iterator[tuple[float, Use]]:
    for each in looks:
        if pid in each.processes:
            yield each.seconds, each.processes[pid]


def _tables(looks: Sequence[Look]) -> Iterator[str]:
    middle = looks[len(looks) // 2]
    yield "| table | beginning | middle | end |\n|---|--:|--:|--:|\n"
    for name in looks[-1].tables:
        sizes = [each.tables.get(name, 0.0) for each in (looks[0], middle, looks[-1])]
        yield f"| {name} | {' | '.join(f'{size:.1f}' for size in sizes)} |\n"


def _answers(answers: Mapping[str, Counter[str]]) -> Iterator[str]:
    for name, said in answers.items():
        told = ", ".join(f"{what}: {count:,}" for what, count in sorted(said.items()))
        yield f"- {name}: {told or 'none'}\n"
