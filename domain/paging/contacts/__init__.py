"""Contacts of people and channels of projects, as every face changes them."""
