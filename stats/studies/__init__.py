"""Tables and pictures of many runs: suites of workloads, sizes of tables, measured against simulated."""
