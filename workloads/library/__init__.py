"""Which kernel a vendor library launches for a problem: its tile, cluster, split of K and grid."""
