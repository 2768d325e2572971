"""The commands. They talk to the server over HTTP and show what it says; nothing is decided here."""
