"""Recurrent networks of the zoo: speech, translation, benchmarks and ways to launch a layer."""
