"""Alerts, and the integrations that receive them."""
