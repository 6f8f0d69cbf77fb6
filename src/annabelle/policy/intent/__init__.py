"""What a person's own words ask for: kinds of action, and who or what is named."""
