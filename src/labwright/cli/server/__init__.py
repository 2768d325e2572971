"""Commands on the server and its state folder."""
