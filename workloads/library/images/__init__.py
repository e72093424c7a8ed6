"""Kernels over images with channels first, beside those of `library.memory.images`: training, pooling, depthwise."""
