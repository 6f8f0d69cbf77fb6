"""The library of scripts: code that is kept under a name and run again."""
