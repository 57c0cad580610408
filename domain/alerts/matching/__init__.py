"""Selection of alerts: their labels, matchers, and the conditions of rules and routes."""
