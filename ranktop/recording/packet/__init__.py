"""The promotion packet of the audits, from recordings and a manifest: what was shown, and what was not."""
