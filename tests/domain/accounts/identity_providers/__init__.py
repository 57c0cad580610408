"""Tests of sign-in through identity providers, without an app."""
