"""Operators of convolutional networks: convolutions, batch normalisation, pooling, and their gradients."""
