"""Everything that makes a model: data, vocabularies, architectures, recipes, packing."""
