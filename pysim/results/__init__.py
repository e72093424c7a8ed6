"""Result tables in memory: runs, kernels, TBs, time series, energy, and the graph of TBs."""
