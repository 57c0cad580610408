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
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import AlertField
from domain.alerts.recognition.proposal import QUESTION_NAMES
from domain.alerts.recognition.tools import Proposal
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

    def use(self, proposal: str) -> None:
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
    """A form with the messages of an alert, and with answers to the questions about them.

    The sample is the message about the problem.
    """

    recovery: StringField = TextAreaField("Message about its recovery")
    repeat: StringField = TextAreaField("Another message about the same problem")

    @property
    def messages(self) -> MessageTexts:
        """The messages as texts."""
        return MessageTexts(
            sample=self["sample"].data or "",
            repeat=self.repeat.data or "",
            recovery=self.recovery.data or "",
        )

    @property
    def answers(self) -> Mapping[str, str]:
        """Values of the chosen answers, by the names of the questions."""
        return {name: self[f"answer_{name}"].data or "" for name in QUESTION_NAMES}


for _name in QUESTION_NAMES:
    setattr(MessagesForm, f"answer_{_name}", StringField())


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
        """Reject other messages without the message about the problem."""
        is_needed = self.recovery.data or self.repeat.data or self.do.data == "recognize"
        if is_needed and not field.data:
            raise ValidationError("Paste a message about a problem.")

    def use_proposal(self, proposal: Proposal) -> None:
        """Fill in the settings that are proposed for the messages."""
        self.type.data = proposal.format.name
        self.name.data = self.name.data or proposal.tool or ""
        url = proposal.format.api_url
        self.api_url.data = url.default if url else None

    @property
    def type_help(self) -> str:
        """Help texts for all types."""
        return " ".join(each.help for each in INTEGRATION_TYPES)

    @property
    def api_url_help(self) -> str:
        """Help text for the API URL, with the purpose for each type that has an API URL."""
        uses = [f"{each.label}: {each.api_url.help}" for each in INTEGRATION_TYPES if each.api_url]
        return " ".join([*uses, "Other types have no API URL."])

    @property
    def types_that_need_a_url(self) -> str:
        """Names of the types that require an API URL, separated by spaces."""
        needed = (each for each in INTEGRATION_TYPES if each.api_url and each.api_url.error_message)
        return " ".join(each.name for each in needed)

    @property
    def usual_urls(self) -> dict[str, str]:
        """Default API URL for each type with an API URL. Empty if there is no default."""
        return {each.name: each.api_url.default or "" for each in INTEGRATION_TYPES if each.api_url}


class ToolIntegrationForm(Form):
    """The form for a new integration of a known tool."""

    name = TextLineField("Name", limit_length(MAX_DISPLAY_NAME_LENGTH, "A name"))


class EndKeyForm(Form):
    """The form that revokes a key, with the key's id, because another user may replace the key."""

    seen = HiddenField()


class ResetKeyForm(EndKeyForm):
    """The form that resets a key, with a grace period for the old key."""

    overlap = RadioField(
        "How long does the old key stay valid?",
        choices=[(each.key, each.words) for each in GracePeriod],
        default=GracePeriod.NOW.key,
        validators=[InputRequired("Choose how long the old key stays valid.")],
    )

    @property
    def chosen(self) -> GracePeriod:
        """Selected grace period."""
        return GracePeriod.from_key(str(self.overlap.data))


class _RepeatedTextField(SelectMultipleField):
    """Several inputs with the same name, in the order of the page."""

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
    resolved_path = _RepeatedTextField(choices=[])
    resolved_operator = _RepeatedTextField(choices=[])
    resolved_words = _RepeatedTextField(choices=[])
    dropped_path = _RepeatedTextField(choices=[])
    dropped_operator = _RepeatedTextField(choices=[])
    dropped_words = _RepeatedTextField(choices=[])

    @property
    def chosen(self) -> MappingChoices:
        """The selected mapping, including blank choices."""
        return MappingChoices(
            paths={field: self[f"map_{field.value}"].data or () for field in AlertField},
            rules=RuleChoices(
                joins={
                    AlertField.TITLE: self.join_title.data or (),
                    AlertField.FINGERPRINT: self.join_fingerprint.data or (),
                },
                separator=(self.separator.data or "") if self.separator.raw_data else ": ",
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
    def table(self) -> Mapping[str, str]:
        """Severity of each word.

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
    def words(self) -> Mapping[str, str]:
        """Chosen severity of each word."""
        return dict(zip(self.word.data or (), self.severity.data or (), strict=False))

    def read_fix(self) -> Mapping[str, Any]:
        """Return the changed mapping.

        Raise InvalidError if it is not a JSON object.
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
    """The form that replays rejected deliveries: a period, and the delivery to continue after."""

    period = SelectField(
        "Rejected in the",
        choices=[(key, words) for key, (words, _) in _REPLAY_PERIODS.items()],
        default="day",
    )
    after = IntegerField(widget=HiddenInput(), validators=[Optional(), NumberRange(0, MAX_ID)])

    @property
    def length(self) -> timedelta:
        """Length of the period, which ends now."""
        return _REPLAY_PERIODS[str(self.period.data)][1]
