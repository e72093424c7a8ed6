"""Operations of convolutional networks on a tape, with kernels that are chosen and their gradients."""
