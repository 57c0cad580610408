"""Passwords, passkeys and second factors in the hands of people."""
