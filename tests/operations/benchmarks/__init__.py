"""Tests of benchmarks and of the demonstration."""
