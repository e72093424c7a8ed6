"""Studies that a script of configs/ runs: what they sweep, and what they keep of it.

A study that only a page of docs/ needs is beside the builder of that page, in docs/builders/.
"""
