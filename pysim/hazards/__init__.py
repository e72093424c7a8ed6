"""Which waits inside programs are too few: programmatic dependent launch, and semaphores of tiles."""
