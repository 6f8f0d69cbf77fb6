"""The one way to a language model. Nothing else in Annabelle talks to a provider (LLM-01).

Import what you need from its own file (`llm.service`, `llm.types`, `llm.registry`): this file stays empty so that a
command that only lists models does not pay for the provider libraries.
"""
