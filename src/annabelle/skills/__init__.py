"""Playbooks: how to handle kinds of requests, and which tools they need."""
