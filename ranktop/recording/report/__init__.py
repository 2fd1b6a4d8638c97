"""One self-contained page for the post-mortem."""
