"""Types of contacts, a file for each: how addresses are read, and how messages are sent to them."""
