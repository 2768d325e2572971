"""Commands on metrics: show, compare, export and import them."""
