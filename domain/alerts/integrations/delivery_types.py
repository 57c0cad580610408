"""Deliveries to an integration and test alerts as all faces see them, and what may be asked."""

from typing import Annotated, Literal

from pydantic import Field

from domain.alerts.deliveries.log import DeliverySelection
from domain.alerts.deliveries.types import StoredDelivery
from domain.alerts.integrations.mapping_types import JsonText, ReadAlert
from domain.alerts.storing.lifecycle import Action
from domain.database.paging import LARGEST_ID
from domain.types.base import Body, GivenTime, KeysetQuery, Resource, one_of

#: By the words of the API; those of pages differ.
SELECTIONS = {
    "all": DeliverySelection.ALL,
    "accepted": DeliverySelection.ACCEPTED,
    "refused": DeliverySelection.REFUSED,
    "warnings": DeliverySelection.WARNINGS,
    "tests": DeliverySelection.TESTS,
}
_Action = Annotated[str, one_of(*Action)]


class DeliveryQuery(KeysetQuery):
    """Which deliveries a list has, the newest first."""

    show: Literal["all", "accepted", "refused", "warnings", "tests"] = "all"
    status: Annotated[int, Field(ge=100, le=599)] | None = Field(
        default=None, description="The status code of the response to the sender."
    )


class DeliveredAlert(Resource):
    """An alert that an item of a delivery opened or changed."""

    iid: int
    title: str = Field(description="Its current title.")
    action: _Action
    item: int = Field(description="The position of the item in the body, from 1.")
    web_url: str


class DeliveryDetail(StoredDelivery):
    """A delivery with its body and the alerts that it touched."""

    alerts: tuple[DeliveredAlert, ...] = Field(description="At most 200.")


class ReplayBody(Body):
    """Which refused deliveries to replay."""

    since: GivenTime = Field(description="Those that arrived from then on,")
    until: GivenTime | None = Field(default=None, description="until then; without it, until now.")
    after: Annotated[int, Field(ge=0, le=LARGEST_ID)] = Field(
        default=0, description="From the `next_after` of the last response, to go on."
    )


class ReplayResult(Resource):
    """The results of replayed deliveries."""

    replayed: tuple[int, ...] = Field(description="The new deliveries.")
    still_refused: tuple[int, ...] = Field(
        description="Those that are refused again: nothing of them is stored."
    )
    next_after: int | None = Field(
        description="If there are more: what `after` has to be to go on with them."
    )


class TestAlertBody(Body):
    """A test alert."""

    #: Tells pytest that the class is no test case in spite of its name.
    __test__ = False

    payload: JsonText | None = Field(
        default=None,
        description="What a sender would post; without it an example of the right format is sent.",
    )
    dry_run: bool = Field(default=False, description="Store nothing, and say what would happen.")


class TestedAlert(Resource):
    """An alert of a test: how it was read, and what storing it did or would do."""

    iid: int | None = Field(description="Null for one that a dry run would open.")
    title: str
    action: _Action
    read: ReadAlert


class TestAlertResult(Resource):
    """The result of a test alert."""

    __test__ = False

    delivery_id: int | None = Field(description="Null for a dry run.")
    alerts: tuple[TestedAlert, ...] = Field(description="At most 50.")
    more: int = Field(description="The number of other alerts in the body.")
    parse_warnings: tuple[str, ...]
