"""What the driver says about the cards, and the leases that keep two runs off one of them."""
