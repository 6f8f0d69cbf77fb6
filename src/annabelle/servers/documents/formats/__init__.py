"""One file per format, each with the library it needs; they are loaded when a file of theirs is read."""
