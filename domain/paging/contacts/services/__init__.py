"""Messaging services whose contacts are entered as fields."""
