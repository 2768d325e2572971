"""Numbers with their source: tools mint evidence, answers cite it, and every number of an answer is checked."""
