"""Plays the guardian by two words, and can be made to die or to dawdle."""
