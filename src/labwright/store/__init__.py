"""The only SQL. One writer at a time; readers never wait for it."""
