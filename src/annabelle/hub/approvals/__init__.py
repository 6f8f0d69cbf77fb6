"""Approval questions: durable, bound to the exact call, answered once (POL-03, I-04)."""
