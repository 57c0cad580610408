"""A proposal for a body of a known tool can be saved, and its saved form can be saved again."""

import json

import pytest

from domain.alerts.formats.registry import FORMATS
from domain.alerts.integrations.mapping_types import AlertMappingBody
from domain.alerts.integrations.samples import build_mapping, parse_sample
from domain.alerts.parsing.mapping_rules import serialize_mapping_rules
from domain.alerts.recognition.known_tools import propose_mapping
from domain.alerts.recognition.messages import Messages
from tests.support.alerts.tool_messages import MODULES, load_messages


@pytest.mark.parametrize("module", MODULES)
def test_a_proposal_is_a_valid_mapping(module: str) -> None:
    text = load_messages(module).sample
    sample = parse_sample(text, nesting_limit=100)
    proposal = propose_mapping(Messages(firing=sample.payload))
    returned = {
        "sample": text,
        "mapping": proposal.mapping.paths,
        "rules": serialize_mapping_rules(proposal.mapping.rules),
    }

    body = AlertMappingBody.model_validate(json.loads(json.dumps(returned)))

    assert proposal.format in FORMATS
    assert body.rules is not None
    saved = build_mapping(body.mapping, Messages(firing=sample.payload), body.rules.rules)
    assert saved.stored == proposal.mapping.stored
