"""What PyTorch launches for a model: operations with their gradients, in the order of its autograd engine."""
