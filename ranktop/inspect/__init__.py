"""Files that somebody sent, as the samples that a live node would have given."""
