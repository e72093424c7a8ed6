"""Suites of published and measured times, simulated, beside baseline models."""
