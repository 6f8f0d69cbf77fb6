"""The one door to the durable engine: what runs through here survives a kill at any moment."""
