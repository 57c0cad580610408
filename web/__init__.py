"""Flask infrastructure such as settings, errors, transactions, access and logs.

This package contains no product rules.
"""
