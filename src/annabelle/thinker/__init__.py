"""The thinker: one process per agent that turns a message into an answer.

It acts only on what the hub sends (THK-02). The one exception: it archives idle conversations by itself and asks the
cheap model for their summary (SES-03).

Nothing is imported here, so that importing one module does not load the model libraries.
"""
