"""One function a tool. The first argument is the server; the others, with their words, are what a model sees."""
