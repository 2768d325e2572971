"""What comes in and goes out over HTTP. Checks of form are here; checks of meaning are in the services."""
