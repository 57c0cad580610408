"""Tests of several hosts, and of what runs in front of or behind them."""
