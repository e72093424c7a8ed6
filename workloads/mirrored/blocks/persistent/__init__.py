"""What the persistent kernels of the measured chains execute; see ``blocks``.

They are ``mlp_persist``, ``gru_persist`` and ``attn_persist`` of the measured program, with a barrier of all
TBs between stages: one tile from the top of the loop over tiles to its end, with all switches of
synchronisation off. Sizes and addresses of a layer are loaded from constants by index in each step, which
takes 30 cycles more before a cp.async may start; sums of one tile share registers with the next loads of
shared memory. Softmax is compiled as in its own kernel. Where fp32 GEMMs load from shared memory twice in a
row, the cycles before and between the two are in the run before: the compiler's stall counts, 4 cycles, in
the GRU's; 8 in that of 64 x 64, so that a lone warp takes the 60 cycles a k that samples of an H200 show.
"""
