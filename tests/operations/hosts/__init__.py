"""Tests of several hosts, and of proxies and poolers in front of them or behind them."""
