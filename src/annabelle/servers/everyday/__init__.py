"""Everyday questions: time, units, money, weather, feeds and QR codes."""
