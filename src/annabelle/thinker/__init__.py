"""The thinker: one process per agent that turns a message into an answer. It acts only on what the hub sends (THK-02).

Nothing is imported here, so that looking at one room does not pay for the model libraries.
"""
