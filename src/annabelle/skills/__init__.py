"""What Annabelle knows how to do: playbooks that say how a kind of request is handled, and which tools it takes."""
