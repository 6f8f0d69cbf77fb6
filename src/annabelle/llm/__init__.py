"""The only access to language models (LLM-01).

Import from the modules: this file stays empty, so that commands that only list models need not load provider libraries.
"""
