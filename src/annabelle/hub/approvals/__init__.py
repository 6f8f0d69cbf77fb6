"""Asking people before a call is made: durable, bound to the exact call, answered once (POL-03, I-04)."""
