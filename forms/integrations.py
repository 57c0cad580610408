"""Forms for integrations: settings, mappings, test alerts and replays."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import orjson
from wtforms import (
    BooleanField,
    HiddenField,
    IntegerField,
    RadioField,
    SelectField,
    SelectMultipleField,
    StringField,
    TextAreaField,
    URLField,
)
from wtforms.validators import (
    InputRequired,
    NumberRange,
    Optional,
    ValidationError,
)
from wtforms.widgets import HiddenInput

from domain.accounts.names import MAX_DISPLAY_NAME_LENGTH
from domain.alerts.formats.registry import FORMATS, INTEGRATION_TYPES
from domain.alerts.integrations.integrations import MAX_API_URL_LENGTH
from domain.alerts.integrations.samples import (
    ConditionChoice,
    MappingChoices,
    MessageTexts,
    RuleChoices,
)
from domain.alerts.integrations.types import MAX_RESOLVE_AFTER_MINUTES, MIN_RESOLVE_AFTER_MINUTES
from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.mapping import AlertField
from domain.alerts.recognition.known_tools import Proposal
from domain.alerts.recognition.questions import ANSWER_SEPARATOR, QUESTION_NAMES
from domain.core.database.pagination import MAX_ID
from domain.core.errors import InvalidError
from domain.core.grace_period import GracePeriod
from domain.core.text_links import is_web_url
from forms.base import Form, TextLineField, UrlLineField, WordListField, limit_length


class IntegrationForm(Form):
    """The form for the settings of an integration."""

    name = TextLineField("Name", limit_length(MAX_DISPLAY_NAME_LENGTH, "A name"))
    api_url = UrlLineField("API URL", limit_length(MAX_API_URL_LENGTH, "A URL"))
    resolve_after_minutes = IntegerField(
        "Resolve alerts without a report after (minutes)",
        validators=[
            Optional(),
            NumberRange(
                MIN_RESOLVE_AFTER_MINUTES,
                MAX_RESOLVE_AFTER_MINUTES,
                message=(
                    f"Enter {MIN_RESOLVE_AFTER_MINUTES} to {MAX_RESOLVE_AFTER_MINUTES:,} minutes, "
                    "or leave the field empty."
                ),
            ),
        ],
    )
    environment_labels = WordListField("Labels that name the environment")
    service_labels = WordListField("Labels that name the service")
    joined_with = SelectMultipleField("Same monitor", coerce=int, choices=[])
    accepts_key_in_url = BooleanField("Accept the key in the URL")
    active = BooleanField("Active", default=True)

    def add_proposed_label(self, proposal: str) -> None:
        """Add a proposed label, such as `environment:namespace`, to the field for its kind."""
        kind, _, name = proposal.partition(":")
        field = {"environment": self.environment_labels, "service": self.service_labels}.get(kind)
        if field is not None and name:
            field.data = f"{field.data or ''}, {name}".lstrip(", ")

    def validate_api_url(self, field: URLField) -> None:
        """Reject malformed URLs. The domain checks whether the type requires a URL."""
        if field.data and not is_web_url(field.data):
            raise ValidationError("Enter a complete URL that starts with https:// or http://.")


class MessagesForm(Form):
    """A form for sample messages about a problem, and for answers to questions about the messages.

    `sample` contains the message that reports the problem. Subclasses define this field.
    """

    recovery: StringField = TextAreaField("Message about the recovery")
    repeat: StringField = TextAreaField("Another message about the same problem")

    @property
    def messages(self) -> MessageTexts:
        """Entered messages: the sample, a repeated message, and the recovery message."""
        return MessageTexts(
            sample=self["sample"].data or "",
            repeat=self.repeat.data or "",
            recovery=self.recovery.data or "",
        )

    @property
    def answers(self) -> Mapping[str, str]:
        """Selected answers by question name."""
        return self._join_values("answer")

    @property
    def applied_answers(self) -> Mapping[str, str]:
        """Answers that the mapping in the form already contains, by question name."""
        return self._join_values("applied")

    def _join_values(self, prefix: str) -> Mapping[str, str]:
        """Return the values of the fields for questions. The fields can be checkboxes."""
        given = ((name, self[f"{prefix}_{name}"].raw_data or ()) for name in QUESTION_NAMES)
        return {name: ANSWER_SEPARATOR.join(filter(None, values)) for name, values in given}


for _name in QUESTION_NAMES:
    setattr(MessagesForm, f"answer_{_name}", StringField())
    setattr(MessagesForm, f"applied_{_name}", StringField())


class NewIntegrationForm(IntegrationForm, MessagesForm):
    """The form for a new integration. Its type cannot be changed later."""

    type = SelectField(
        "Type",
        choices=[(each.name, each.label) for each in INTEGRATION_TYPES],
        default=FORMATS[0].name,
    )
    sample = TextAreaField("Message about a problem")
    #: Digest of the messages whose proposal the page shows.
    recognized = HiddenField()
    do = HiddenField()

    def validate_sample(self, field: StringField) -> None:
        """Require the sample if another message was entered or recognition was requested."""
        is_needed = self.recovery.data or self.repeat.data or self.do.data == "recognize"
        if is_needed and not field.data:
            raise ValidationError("Paste a message about a problem.")

    def apply_proposal(self, proposal: Proposal) -> None:
        """Fill in the settings that are proposed for the messages."""
        self.type.data = proposal.format.name
        self.name.data = self.name.data or proposal.tool or ""
        url = proposal.format.api_url
        self.api_url.data = url.default if url else None

    @property
    def type_help(self) -> str:
        """Help texts for all integration types, joined with spaces."""
        return " ".join(each.help for each in INTEGRATION_TYPES)

    @property
    def api_url_help(self) -> str:
        """Help text for the API URL, with the purpose for each type that has an API URL."""
        uses = [f"{each.label}: {each.api_url.help}" for each in INTEGRATION_TYPES if each.api_url]
        return " ".join([*uses, "Other types have no API URL."])

    @property
    def types_with_required_url(self) -> str:
        """Names of the types that require an API URL, separated by spaces."""
        needed = (each for each in INTEGRATION_TYPES if each.api_url and each.api_url.error_message)
        return " ".join(each.name for each in needed)

    @property
    def default_api_urls(self) -> dict[str, str]:
        """Default API URL by integration type, or an empty string if a type has no default."""
        return {each.name: each.api_url.default or "" for each in INTEGRATION_TYPES if each.api_url}


class ToolIntegrationForm(Form):
    """The form for a new integration of a known tool."""

    name = TextLineField("Name", limit_length(MAX_DISPLAY_NAME_LENGTH, "A name"))


class RevokeKeyForm(Form):
    """The form that revokes a key of an integration.

    The form contains the key's ID, since another user may replace the key in the meantime.
    """

    seen = HiddenField()


class ResetKeyForm(RevokeKeyForm):
    """The form that resets a key of an integration, with a grace period for the old key."""

    overlap = RadioField(
        "How long does the old key stay valid?",
        choices=[(each.key, each.words) for each in GracePeriod],
        default=GracePeriod.DAY.key,
        validators=[InputRequired("Choose how long the old key stays valid.")],
    )

    @property
    def grace_period(self) -> GracePeriod:
        """Selected grace period."""
        return GracePeriod.from_key(str(self.overlap.data))


class _RepeatedTextField(SelectMultipleField):
    """A field for several text inputs with the same name, in page order."""

    def pre_validate(self, form: object) -> None:
        """Accept any text, since the domain validates it."""


class MappingForm(MessagesForm):
    """The form for a mapping: messages, paths for each field of an alert, and rules."""

    sample = TextAreaField(
        "Sample payload (JSON)", validators=[InputRequired("Paste a sample payload.")]
    )
    #: Digest of the sample for which the choices were made.
    mapped_for = HiddenField()
    #: Digest of the mapping that was proposed.
    proposed = HiddenField()
    join_title = _RepeatedTextField(choices=[])
    join_fingerprint = _RepeatedTextField(choices=[])
    separator = StringField("Separator")
    ignored_words = StringField("Ignored words")
    resolved_path = _RepeatedTextField(choices=[])
    resolved_operator = _RepeatedTextField(choices=[])
    resolved_words = _RepeatedTextField(choices=[])
    dropped_path = _RepeatedTextField(choices=[])
    dropped_operator = _RepeatedTextField(choices=[])
    dropped_words = _RepeatedTextField(choices=[])

    @property
    def entered_mapping(self) -> MappingChoices:
        """The selected mapping, including blank choices."""
        return MappingChoices(
            paths={field: self[f"map_{field.value}"].data or () for field in AlertField},
            rules=RuleChoices(
                joins={
                    AlertField.TITLE: self.join_title.data or (),
                    AlertField.FINGERPRINT: self.join_fingerprint.data or (),
                },
                separator=(self.separator.data or "") if self.separator.raw_data else ": ",
                ignored_words=self.ignored_words.data or "",
                resolved_when=self._list_condition_choices("resolved"),
                dropped_when=self._list_condition_choices("dropped"),
            ),
        )

    def _list_condition_choices(self, kind: str) -> Sequence[ConditionChoice]:
        columns = (self[f"{kind}_{name}"].data or () for name in ("path", "operator", "words"))
        return [
            ConditionChoice(path=path, operator=operator, words=words)
            for path, operator, words in zip(*columns, strict=False)
        ]


for _alert_field in AlertField:
    # Each field has two drop-downs with the same name, whose choices depend on the sample.
    setattr(MappingForm, f"map_{_alert_field.value}", _RepeatedTextField(choices=[]))


class SeverityWordsForm(Form):
    """The form for the severity words of an integration, as lines of text."""

    words = TextAreaField("Severity words")

    @property
    def severities_by_word(self) -> Mapping[str, str]:
        """The severities in the text, by word.

        Raise ValueError if a line has no severity.
        """
        lines = [line for line in (self.words.data or "").splitlines() if line.strip()]
        table: dict[str, str] = {}
        for line in lines:
            word, equals, severity = line.rpartition("=")
            if not equals:
                raise ValueError(f"“{line.strip()[:60]}” does not have the form “word = severity”.")
            table[word.strip()] = severity.strip().lower()
        return table


class WarningFixForm(Form):
    """The form that saves the fix for a warning: a mapping, or a severity for each unknown word."""

    #: The changed mapping as JSON.
    fix = HiddenField()
    word = _RepeatedTextField(choices=[])
    severity = _RepeatedTextField(choices=[])

    @property
    def chosen_severities(self) -> Mapping[str, str]:
        """The chosen severities by word."""
        return dict(zip(self.word.data or (), self.severity.data or (), strict=False))

    def parse_fixed_mapping(self) -> Mapping[str, Any]:
        """Return the changed mapping, which the form contains as JSON.

        Raise InvalidError if the text is not a JSON object.
        """
        with suppress(orjson.JSONDecodeError):
            if isinstance(found := orjson.loads(self.fix.data or ""), dict):
                return found
        raise InvalidError("The fix is incomplete. Check it again.")


def build_severity_words_form(words: Mapping[str, Severity]) -> SeverityWordsForm:
    """Return the form with a line for each severity word."""
    lines = "\n".join(f"{word} = {severity.value}" for word, severity in words.items())
    return SeverityWordsForm(formdata=None, words=lines)


class TestAlertForm(Form):
    """The form for the payload of a test alert. The receiver validates the payload."""

    #: Marker that prevents pytest from collecting this class as a test case.
    __test__ = False

    payload = TextAreaField("Payload (JSON)", validators=[InputRequired("Enter a JSON object.")])


_REPLAY_PERIODS = {
    "hour": ("last hour", timedelta(hours=1)),
    "day": ("last 24 hours", timedelta(days=1)),
    "week": ("last 7 days", timedelta(days=7)),
    "month": ("last 30 days", timedelta(days=30)),
}


class ReplayForm(Form):
    """The form that selects the rejected deliveries to replay.

    The selection consists of a period and the ID of the delivery after which the replay continues.
    """

    period = SelectField(
        "Rejected in the",
        choices=[(key, words) for key, (words, _) in _REPLAY_PERIODS.items()],
        default="day",
    )
    after = IntegerField(widget=HiddenInput(), validators=[Optional(), NumberRange(0, MAX_ID)])

    @property
    def period_length(self) -> timedelta:
        """Length of the period that ends now."""
        return _REPLAY_PERIODS[str(self.period.data)][1]
