"""The lines of a rank and of the node, one file a subject."""
