"""Runs of a job: lowering to the core's tables, the run in the core, and replay of equal periods."""
