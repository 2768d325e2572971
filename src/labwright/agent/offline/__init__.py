"""Conversation without a language model, by rules."""
