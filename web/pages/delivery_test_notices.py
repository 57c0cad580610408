"""Notices about the results of test messages, shown on pages."""

from flask import flash

from domain.delivery.destination_types import SentTest


def flash_delivery_test_result(result: SentTest, what: str) -> None:
    """Show the result of a test message or test event on the next page."""
    if result.delivered:
        took = f"{result.status} after {result.duration_ms} ms"
        flash(f"{what.capitalize()} delivered: {took}.")
    else:
        flash(f"The {what} was not delivered: {result.error}.", "error")
