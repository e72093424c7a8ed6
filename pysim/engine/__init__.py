"""From a job to result tables: lowering, the run in the core, and replay of equal periods."""
