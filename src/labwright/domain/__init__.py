"""Values and rules, standard library only: no I/O, no clock, no SQL, no HTTP."""
