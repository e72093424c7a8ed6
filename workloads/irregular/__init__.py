"""Kernel graphs that depend on the input: rigid bodies in contact, networks whose path is chosen a picture.

Sizes, tiles and bodies where none were published are assumed, and each factory says which.
"""
