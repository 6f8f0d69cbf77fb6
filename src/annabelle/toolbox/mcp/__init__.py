"""The Model Context Protocol as the hub speaks it: small, tolerant, and without the weight of the SDK's client.

The SDK's client validates each message several times with models; over a local pipe that costs more than the call.
Here a message is parsed once. The SDK is still used where its transport is needed: servers reached by HTTP.
"""
