"""Sandbox backends that isolate executed code, one class each, behind one protocol."""
