"""Matrix, by an account of Annabelle's own."""
