"""GPU detection through the driver, and leases that keep two runs off one GPU."""
