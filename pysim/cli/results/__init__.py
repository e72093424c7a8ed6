"""The commands that read result files: a module each.

They import ``stats``, as it reads result files, inside functions.
"""
