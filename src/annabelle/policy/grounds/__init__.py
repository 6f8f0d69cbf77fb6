"""When a call needs no question: one file for each thing it may do. Each gives the doubts, as sentences."""
