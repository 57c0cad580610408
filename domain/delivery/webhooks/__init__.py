"""Outgoing webhooks: endpoints of projects, their messages and the results of deliveries."""
