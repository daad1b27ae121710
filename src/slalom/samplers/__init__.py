"""Which queries to ask; see base.py for what a sampler is."""
