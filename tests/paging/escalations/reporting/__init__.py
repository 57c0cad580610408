"""Tests of the explanations, histories and reports of escalations."""
