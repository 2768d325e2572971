"""The only SQL. There is one writer at a time; readers never wait for it."""
