"""Reads GraphQL documents with graphql-core.

No schema is available, so the type of a field is derived from its name and its containing type.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    ArgumentNode,
    DocumentNode,
    EnumValueNode,
    FieldNode,
    FragmentDefinitionNode,
    GraphQLError,
    InlineFragmentNode,
    Node,
    ObjectValueNode,
    OperationDefinitionNode,
    SelectionNode,
    ValueNode,
    VariableNode,
    parse,
)

from domain.releases.changes import ApiNameKind, Change, Interface, NamePattern
from domain.releases.checker.findings import DetectedChange, UnreadableContentError
from domain.releases.schedule import SCHEDULE

#: Maximum number of tokens in a document. graphql-core takes about a second for 250,000 tokens.
MAX_TOKENS = 50_000
_INVALID_DOCUMENT = "The content is not a valid GraphQL document, or is too large"
#: Fields on the path from a connection to its items.
_CONNECTION_FIELDS = frozenset({"nodes", "edges", "node"})
#: Types of fields by containing type and field name. An empty type stands for any type.
_FIELD_TYPES = {
    ("", "runner"): "CiRunner",
    ("", "runners"): "CiRunner",
    ("", "assets"): "ReleaseAssets",
    ("ReleaseAssets", "links"): "ReleaseAssetLink",
    ("", "releaseAssetLinkCreate"): "ReleaseAssetLinkPayload",
    ("", "releaseAssetLinkUpdate"): "ReleaseAssetLinkPayload",
    ("", "releaseAssetLinkDelete"): "ReleaseAssetLinkPayload",
    ("ReleaseAssetLinkPayload", "link"): "ReleaseAssetLink",
}
#: Types of arguments whose values occur in the schedule, by field and argument.
_ARGUMENT_TYPES = {
    ("runners", "status"): "CiRunnerStatus",
    ("runners", "statuses"): "CiRunnerStatus",
}


@dataclass(frozen=True)
class _ScheduleEntry:
    """Names in the schedule, with the change that affects them."""

    change: Change
    names: NamePattern


def _find_schedule_entries(where: ApiNameKind) -> tuple[_ScheduleEntry, ...]:
    return tuple(
        _ScheduleEntry(change, match)
        for change in SCHEDULE
        for match in change.matches
        if change.interface in {Interface.GRAPHQL, Interface.REST}
        and isinstance(match, NamePattern)
        and match.where is where
    )


_FIELD_ENTRIES = _find_schedule_entries(ApiNameKind.GRAPHQL_FIELD)
_ARGUMENT_ENTRIES = _find_schedule_entries(ApiNameKind.GRAPHQL_ARGUMENT)
_VALUE_ENTRIES = _find_schedule_entries(ApiNameKind.GRAPHQL_VALUE)


def parse_document(text: str) -> DocumentNode:
    """Parse a GraphQL document.

    Raise UnreadableContentError if the document is not valid.
    """
    try:
        return parse(text, max_tokens=MAX_TOKENS)
    except GraphQLError as error:
        line = error.locations[0].line if error.locations else None
        raise UnreadableContentError(_INVALID_DOCUMENT, line=line) from None
    except RecursionError:
        raise UnreadableContentError("The GraphQL document is nested too deeply") from None


def check_document(
    text: str, variables: Mapping[str, Any] | None, line: int
) -> Iterator[DetectedChange]:
    """Yield the changes that affect a GraphQL document starting at the given line.

    Raise UnreadableContentError if the document is not valid.
    """
    document = parse_document(text)
    for definition in document.definitions:
        if isinstance(definition, OperationDefinitionNode):
            reader = _DocumentChecker(line - 1, variables or {}, _find_variable_types(definition))
            yield from reader.iterate_changes(definition, "")
        elif isinstance(definition, FragmentDefinitionNode):
            type_name = definition.type_condition.name.value
            yield from _DocumentChecker(line - 1, {}, {}).iterate_changes(definition, type_name)


def _find_variable_types(operation: OperationDefinitionNode) -> dict[str, str]:
    """Return the type names of variables, without list and non-null modifiers."""
    found = {}
    for each in operation.variable_definitions or ():
        kind: Any = each.type
        while not hasattr(kind, "name"):
            kind = kind.type
        found[each.variable.name.value] = kind.name.value
    return found


@dataclass
class _DocumentChecker:
    """A reader of one operation or fragment in a document."""

    lines_before: int
    variables: Mapping[str, Any]
    variable_types: Mapping[str, str]
    stack: list[tuple[SelectionNode, str]] = field(default_factory=list)

    def iterate_changes(self, definition: Any, type_name: str) -> Iterator[DetectedChange]:
        """Yield the changes that affect a field at any level, without recursion."""
        self._push_selections(definition, type_name)
        while self.stack:
            selection, inside = self.stack.pop()
            if isinstance(selection, FieldNode):
                yield from self._check_field(selection, inside)
            elif isinstance(selection, InlineFragmentNode):
                condition = selection.type_condition
                self._push_selections(selection, condition.name.value if condition else inside)

    def _push_selections(self, node: Any, type_name: str) -> None:
        if node.selection_set:
            self.stack.extend((each, type_name) for each in node.selection_set.selections)

    def _check_field(self, node: FieldNode, type_name: str) -> Iterator[DetectedChange]:
        name = node.name.value
        given = {each.name.value for each in node.arguments or ()}
        for entry in _FIELD_ENTRIES:
            if _matches_field(entry.names, name, type_name) and given.isdisjoint(
                entry.names.unless
            ):
                yield self._build_detected_change(
                    entry, node, f"The field {_find_schedule_name(entry.names, name)}"
                )
        for argument in node.arguments or ():
            yield from self._check_argument(argument, name)
        self._push_selections(node, _find_field_type(name, type_name))

    def _check_argument(self, argument: ArgumentNode, field_name: str) -> Iterator[DetectedChange]:
        name = argument.name.value
        given = [(name, argument), *self._list_members(argument.value)]
        for entry in _ARGUMENT_ENTRIES:
            if field_name in entry.names.types:
                for member, node in given:
                    if member in entry.names.names:
                        yield self._build_detected_change(
                            entry, node, f"The argument {member} of {field_name}"
                        )
        yield from self._check_argument_value(argument, _ARGUMENT_TYPES.get((field_name, name)))

    def _check_argument_value(
        self, argument: ArgumentNode, kind: str | None
    ) -> Iterator[DetectedChange]:
        for entry in _VALUE_ENTRIES:
            if kind in entry.names.types and self._list_enum_values(argument.value) & {
                *entry.names.names
            }:
                yield self._build_detected_change(entry, argument, f"A value of {kind}")

    def _list_members(self, value: ValueNode) -> list[tuple[str, Node]]:
        """Return the members of an input object, given literally or as a variable."""
        if isinstance(value, ObjectValueNode):
            return [(each.name.value, each) for each in value.fields]
        if isinstance(value, VariableNode):
            given = self.variables.get(value.name.value)
            return [(name, value) for name in given] if isinstance(given, dict) else []
        return []

    def _list_enum_values(self, value: ValueNode) -> set[str]:
        if isinstance(value, EnumValueNode):
            return {value.value}
        if isinstance(value, VariableNode):
            given = self.variables.get(value.name.value)
            return {given} if isinstance(given, str) else set()
        members = getattr(value, "values", None) or ()
        return {each.value for each in members if isinstance(each, EnumValueNode)}

    def _build_detected_change(
        self, entry: _ScheduleEntry, node: Node, reason: str
    ) -> DetectedChange:
        line = node.loc.start_token.line if node.loc else 1
        return DetectedChange(entry.change, self.lines_before + line, reason)


def _find_schedule_name(names: NamePattern, name: str) -> str:
    return next(each for each in names.names if each == name)


def _matches_field(names: NamePattern, name: str, type_name: str) -> bool:
    return name in names.names and (not names.types or type_name in names.types)


def _find_field_type(name: str, type_name: str) -> str:
    if name in _CONNECTION_FIELDS:
        return type_name
    return _FIELD_TYPES.get((type_name, name)) or _FIELD_TYPES.get(("", name), "")
