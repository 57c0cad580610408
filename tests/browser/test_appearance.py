"""What administrators say on the sign-in page and on all pages, light and dark, wide and narrow."""

from playwright.sync_api import Page, expect

from tests.browser.looks import problems_at
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings


def test_title_description_and_messages_are_readable(live_sqlite: LiveGatebell, page: Page) -> None:
    description = (
        "For **all** of Acme.\n\n- Ask [Eve](https://acme.example/eve) for an account.\n"
        "- `gatebell-help` is the channel.\n\n```\n" + "long " * 60 + "\n```\n> Mind the step."
    )
    with changed_settings(
        live_sqlite,
        appearance_title="Acme's alerts " + "very-long-word" * 6,
        appearance_description=description,
        header_message="Maintenance on Sunday, " + "very-long-word" * 12,
        footer_message="Staging",
    ):
        assert problems_at(page, f"{live_sqlite.url}/users/sign_in") == []
        expect(page.get_by_text("Maintenance on Sunday")).to_be_visible()
        expect(page.get_by_role("link", name="Eve")).to_have_attribute(
            "href", "https://acme.example/eve"
        )
