"""The OpenAI chat-completions protocol over plain HTTP: seven of the eight providers speak it."""
