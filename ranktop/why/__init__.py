"""What died on this node, and of what: evidence that is left afterwards, gathered and judged."""
