"""Which sources made a language model say that; see attribute.py."""
