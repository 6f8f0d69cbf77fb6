"""One living conversation with one server, over pipes or over HTTP."""
