"""Which TBs need which: dependences from footprints, as group nodes, and the graph that they make."""
