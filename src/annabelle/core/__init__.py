"""The vocabulary every other room speaks. Imports nothing of ours."""
