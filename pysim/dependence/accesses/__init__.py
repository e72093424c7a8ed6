"""Dependences in memory that only accesses describe: a walk over the kernels in launch order."""
