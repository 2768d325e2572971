"""What happens to one run: its folder, its launch, what its sidecar reports, its end."""
