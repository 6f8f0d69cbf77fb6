"""The only access to language models (LLM-01). Empty, so that listing models loads no provider libraries."""
