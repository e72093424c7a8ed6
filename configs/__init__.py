"""Runnable experiments, one question each: ``python -m pysim.configs.titanv_gru``."""
