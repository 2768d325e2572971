"""The machine or cluster that runs use."""
