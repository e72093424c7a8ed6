"""Studies that a script of configs/ runs: what they sweep, and what they keep of it."""
