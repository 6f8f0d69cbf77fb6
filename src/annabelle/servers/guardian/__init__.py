"""Looks at everything that enters or leaves a tool for text that tries to give orders; called by the hub alone."""
