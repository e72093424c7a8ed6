"""GEMM kernels as libraries launch them, by name and grid."""
