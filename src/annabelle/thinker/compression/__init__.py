"""The thinking phase: what a request is made of when a history has grown long, and the workspace beside it."""
