"""Dependences between thread blocks (TBs): found from footprints, held as group nodes or as a graph."""
