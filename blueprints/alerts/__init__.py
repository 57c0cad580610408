"""Alerts: received, listed, shown and worked on."""
