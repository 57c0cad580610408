"""Tests of pages: batching, sending and retries."""
