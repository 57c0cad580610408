"""Finds the integration that a delivery is addressed to, and logs rejected deliveries."""
