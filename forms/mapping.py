"""The forms of a mapping: where the fields of an alert are read, its rules, and severity words."""

from collections.abc import Mapping, Sequence

from wtforms import (
    HiddenField,
    SelectField,
    SelectMultipleField,
    StringField,
    TextAreaField,
)
from wtforms.validators import DataRequired, InputRequired

from domain.alerts.integrations.rule_choices import ConditionChoice, RuleChoices
from domain.alerts.integrations.samples import Chosen
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import AlertField
from forms.base import Form, without_edges


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
                message = f"“{line.strip()[:60]}” is not of the form word = severity."
                raise ValueError(message)
            table[word.strip()] = severity.strip().lower()
        return table


class SeverityWordForm(Form):
    """A word that senders use, and the severity that it stands for."""

    word = StringField("Word", filters=[without_edges], validators=[DataRequired("Enter a word.")])
    severity = SelectField("Severity", choices=[(each.value, each.value) for each in Severity])


def words_form(words: Mapping[str, Severity]) -> SeverityWordsForm:
    """Return the form with the lines of a table of severity words."""
    lines = "\n".join(f"{word} = {severity.value}" for word, severity in words.items())
    return SeverityWordsForm(formdata=None, words=lines)
