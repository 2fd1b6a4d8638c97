"""Many nodes through a Prometheus server: what is asked, and what the answers say."""
