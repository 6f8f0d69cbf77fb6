"""Ends as soon as it has started, with a word about why."""
