"""Actions on the contacts of users and on the channels of projects and groups."""
