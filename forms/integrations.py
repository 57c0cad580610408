"""Forms of integrations: settings, mappings, test alerts and replays."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

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
    DataRequired,
    InputRequired,
    NumberRange,
    Optional,
    ValidationError,
)
from wtforms.widgets import HiddenInput

from domain.accounts.names import LONGEST_NAME
from domain.alerts.formats.registry import FORMATS, INTEGRATION_TYPES
from domain.alerts.integrations.integrations import LONGEST_URL
from domain.alerts.integrations.samples import Chosen, ConditionChoice, RuleChoices
from domain.alerts.integrations.types import LONGEST_SILENCE, SHORTEST_SILENCE
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import AlertField
from domain.core.database.paging import LARGEST_ID
from domain.core.grace_period import GracePeriod
from domain.core.text_links import is_web_url
from forms.base import Form, Line, UrlLine, WordsLine, at_most


class IntegrationForm(Form):
    """The settings of an integration."""

    name = Line("Name", at_most(LONGEST_NAME, "A name"))
    api_url = UrlLine("API URL", at_most(LONGEST_URL, "A URL"))
    resolve_after_minutes = IntegerField(
        "Resolve alerts without a report after (minutes)",
        validators=[
            Optional(),
            NumberRange(
                SHORTEST_SILENCE,
                LONGEST_SILENCE,
                message=f"Enter {SHORTEST_SILENCE} to {LONGEST_SILENCE:,} minutes, or nothing for "
                "never.",
            ),
        ],
    )
    environment_labels = WordsLine("Labels that name the environment")
    service_labels = WordsLine("Labels that name the service")
    joined_with = SelectMultipleField("Same monitor", coerce=int, choices=[])
    accepts_key_in_url = BooleanField("Accept the key in the URL")
    active = BooleanField("Active", default=True)

    def use(self, proposal: str) -> None:
        """Add a label to those that name something: `environment:namespace`."""
        kind, _, name = proposal.partition(":")
        field = {"environment": self.environment_labels, "service": self.service_labels}.get(kind)
        if field is not None and name:
            field.data = f"{field.data or ''}, {name}".lstrip(", ")

    def validate_api_url(self, field: URLField) -> None:
        """Refuse malformed URLs; the domain decides by the type whether one is required."""
        if field.data and not is_web_url(field.data):
            raise ValidationError("A URL starts with https:// or http:// and names a host.")


class NewIntegrationForm(IntegrationForm):
    """The settings of a new integration with its type, which cannot be changed later."""

    type = SelectField(
        "Type",
        choices=[(each.name, each.label) for each in INTEGRATION_TYPES],
        default=FORMATS[0].name,
    )
    #: A payload of the sender, which the mapping is proposed for.
    sample = HiddenField(id="sample-json")

    @property
    def type_help(self) -> str:
        """What each type takes."""
        return " ".join(each.help for each in INTEGRATION_TYPES)

    @property
    def api_url_help(self) -> str:
        """What the API URL is for, by the types that have one."""
        uses = [f"{each.label}: {each.api_url.help}" for each in INTEGRATION_TYPES if each.api_url]
        return " ".join([*uses, "Other types have none."])

    @property
    def types_that_need_a_url(self) -> str:
        """Their names, separated by spaces."""
        needed = (each for each in INTEGRATION_TYPES if each.api_url and each.api_url.refusal)
        return " ".join(each.name for each in needed)

    @property
    def usual_urls(self) -> dict[str, str]:
        """The usual API URL of each type that has one, or an empty text."""
        return {each.name: each.api_url.usual or "" for each in INTEGRATION_TYPES if each.api_url}


class SampleForm(Form):
    """A payload whose tool is to be recognized."""

    sample = TextAreaField(
        "Payload of your monitoring tool", validators=[InputRequired("Paste a payload.")]
    )


class EndKeyForm(Form):
    """The id of the key that the page showed, since another user may have replaced it."""

    seen = HiddenField()


class ResetKeyForm(EndKeyForm):
    """The grace period for which the old key is accepted beside the new one."""

    overlap = RadioField(
        "How long does the old key stay valid?",
        choices=[(each.key, each.words) for each in GracePeriod],
        default=GracePeriod.NOW.key,
        validators=[InputRequired("Choose how long the old key stays valid.")],
    )

    @property
    def chosen(self) -> GracePeriod:
        """The chosen grace period."""
        return GracePeriod.of(str(self.overlap.data))


class _Texts(SelectMultipleField):
    """Inputs of the same name, in the order of the page."""

    def pre_validate(self, form: object) -> None:
        """Take any text: the domain checks it."""


class MappingForm(Form):
    """A sample; for each field of an alert its path and fallback path; and the rules."""

    sample = TextAreaField(
        "Sample payload (JSON)", validators=[InputRequired("Paste a sample payload.")]
    )
    #: The digest of the sample that the choices were made for.
    mapped_for = HiddenField()
    join_title = _Texts(choices=[])
    join_fingerprint = _Texts(choices=[])
    separator = StringField("Separator")
    resolved_path = _Texts(choices=[])
    resolved_operator = _Texts(choices=[])
    resolved_words = _Texts(choices=[])
    dropped_path = _Texts(choices=[])
    dropped_operator = _Texts(choices=[])
    dropped_words = _Texts(choices=[])

    @property
    def chosen(self) -> Chosen:
        """What was chosen, blank choices included."""
        return Chosen(
            paths={field: self[f"map_{field.value}"].data or () for field in AlertField},
            rules=RuleChoices(
                joins={
                    AlertField.TITLE: self.join_title.data or (),
                    AlertField.FINGERPRINT: self.join_fingerprint.data or (),
                },
                separator=(self.separator.data or "") if self.separator.raw_data else ": ",
                resolved_when=self._conditions("resolved"),
                dropped_when=self._conditions("dropped"),
            ),
        )

    def _conditions(self, kind: str) -> Sequence[ConditionChoice]:
        columns = (self[f"{kind}_{name}"].data or () for name in ("path", "operator", "words"))
        return [
            ConditionChoice(path=path, operator=operator, words=words)
            for path, operator, words in zip(*columns, strict=False)
        ]


for _alert_field in AlertField:
    # Two drop-downs with the same name; their choices depend on the sample.
    setattr(MappingForm, f"map_{_alert_field.value}", _Texts(choices=[]))


class SeverityWordsForm(Form):
    """The table of severity words of an integration, as lines of text."""

    words = TextAreaField("Severity words")

    @property
    def table(self) -> Mapping[str, str]:
        """The severities by their words; raise ValueError naming a line that has none."""
        lines = [line for line in (self.words.data or "").splitlines() if line.strip()]
        table: dict[str, str] = {}
        for line in lines:
            word, equals, severity = line.rpartition("=")
            if not equals:
                raise ValueError(f"“{line.strip()[:60]}” is not of the form word = severity.")
            table[word.strip()] = severity.strip().lower()
        return table


class SeverityWordForm(Form):
    """A word that senders use, and the severity that it stands for."""

    word = Line("Word", DataRequired("Enter a word."))
    severity = SelectField("Severity", choices=[(each.value, each.value) for each in Severity])


def words_form(words: Mapping[str, Severity]) -> SeverityWordsForm:
    """Return the form with the lines of a table of severity words."""
    lines = "\n".join(f"{word} = {severity.value}" for word, severity in words.items())
    return SeverityWordsForm(formdata=None, words=lines)


class TestAlertForm(Form):
    """The payload of a test alert; it is validated by the receiver."""

    #: Tells pytest that the class is no test case in spite of its name.
    __test__ = False

    payload = TextAreaField("Payload (JSON)", validators=[InputRequired("Enter a JSON object.")])


_PERIODS = {
    "hour": ("last hour", timedelta(hours=1)),
    "day": ("last 24 hours", timedelta(days=1)),
    "week": ("last 7 days", timedelta(days=7)),
    "month": ("last 30 days", timedelta(days=30)),
}


class ReplayForm(Form):
    """The refused deliveries of which period, and after which one to go on."""

    period = SelectField(
        "Rejected in the",
        choices=[(key, words) for key, (words, _) in _PERIODS.items()],
        default="day",
    )
    after = IntegerField(widget=HiddenInput(), validators=[Optional(), NumberRange(0, LARGEST_ID)])

    @property
    def length(self) -> timedelta:
        """How long before now the period begins."""
        return _PERIODS[str(self.period.data)][1]
