"""Traces for programs that read OpenTelemetry."""
