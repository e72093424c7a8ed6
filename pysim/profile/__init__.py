"""Profiles of other tools: what a run that was measured would take under other schemes."""
