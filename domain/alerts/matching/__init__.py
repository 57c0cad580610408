"""Which alerts a rule is about: labels of alerts, matchers, and conditions of rules and routes."""
