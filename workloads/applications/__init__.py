"""Applications of published studies as graphs of kernels.

Sizes, tiles and bodies where none were published are assumed, and each factory says which.
"""
