"""Studies that make one page or figure: what they sweep, and what they keep of it."""
