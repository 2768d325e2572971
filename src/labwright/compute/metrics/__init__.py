"""Read metric files of runs into the database."""
