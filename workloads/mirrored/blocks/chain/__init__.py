"""What the kernels of the measured chains execute; see ``blocks``.

Their code differs from that of the plain kernels: they are compiled with switches for traces, waits and posts
(``suite.cuh``, MODE 2), which all modes of a run share. Here is the path with all of them off, and without
the relu between layers. Code that is not branched past is counted in its position, such as a predicated
PREEXIT. Where shared-memory loads follow arithmetic a run is split, so that they are not issued early.

Stalls of a run are not assumed here: each instruction issues as late as the stall count of its control word
says, one that waits for a scoreboard as in ``code``, and branch instructions take cycles beyond their counts,
as sampled on an H200 (``h200_samples.csv``; a taken branch 6, BSYNC 9, YIELD 42: samples of the next
instruction that wait for the branch unit or to be fetched, over those of an issue). Those of HGEMM8 are
assumed as in plain kernels: its cp.async hold shared memory when they are issued, which accounts for more of
its step than its branches do.
"""
