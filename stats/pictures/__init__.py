"""Pictures of results; matplotlib is imported only when one is drawn."""
