"""Conversations as stored: what people may do with them, what a turn writes, and what a model is shown of them."""
