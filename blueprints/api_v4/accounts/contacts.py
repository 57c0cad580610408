"""/api/v4/user/contacts: where and when the user is told of alerts."""

from domain.contacts import actions
from domain.database.paging import LARGEST_ID
from web.api.operations import Resources

_ONE = f"/<int(max={LARGEST_ID}):contact_id>"

contacts = Resources("contacts", __name__, url_prefix="/user/contacts")
contacts.bind("GET", "", actions.list_contacts)
contacts.bind("POST", "", actions.create_contact)
contacts.bind("GET", _ONE, actions.show_contact)
contacts.bind("POST", f"{_ONE}/confirm", actions.confirm_contact, status=200)
contacts.bind("POST", f"{_ONE}/send_code", actions.send_code, status=200)
contacts.bind("POST", f"{_ONE}/test", actions.send_contact_test, status=200)
contacts.bind("DELETE", _ONE, actions.delete_contact)
contacts.bind("GET", "/preferences", actions.show_preferences)
contacts.bind("PUT", "/preferences", actions.change_preferences)
