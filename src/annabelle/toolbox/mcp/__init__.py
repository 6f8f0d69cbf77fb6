"""The hub's MCP client: small, tolerant, and cheaper than the SDK's client.

The SDK validates each message several times with models; over a local pipe that costs more than the call. Here a
message is parsed once. The SDK is used only for servers reached by HTTP.
"""
