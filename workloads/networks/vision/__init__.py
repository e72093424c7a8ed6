"""Convolutional networks that users name, as torchvision builds them, and networks of published searches."""
