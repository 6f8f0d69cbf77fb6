"""Takes the rows of a file into the memory, all of them within one transaction."""
