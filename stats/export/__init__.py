"""Results in the formats of other tools: Chrome traces, Parquet."""
