"""From the bytes of a page or document to text, in a process that can be ended at any moment."""
