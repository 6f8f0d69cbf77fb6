"""Runs in processes of its own: one that forks servers, the wardens around external ones, and a lone server's start.

Everything here is plain, synchronous and imports only the standard library: it runs between fork and exec, and a
thread or an event loop in the nursery would not survive a fork.
"""
