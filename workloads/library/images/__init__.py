"""Kernels over images with channels first, beside `library.memory.images`: training, pooling, depthwise."""
