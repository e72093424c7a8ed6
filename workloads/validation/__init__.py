"""Suites of published and measured times, what the simulator says of them, and what null models say."""
