"""Commands on runs: submit, list, show, follow and change them."""
