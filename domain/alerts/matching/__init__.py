"""Selection of alerts by labels, matchers, and the conditions of rules and routes."""
