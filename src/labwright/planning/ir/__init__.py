"""The contents of a plan: drafts, its document, and the intermediate representation (IR) compiled from them."""
