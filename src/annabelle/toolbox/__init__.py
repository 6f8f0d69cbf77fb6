"""The one way to every tool: servers are found, started, watched and called here.

Only the facade is meant for other rooms: `annabelle.toolbox.facade.Toolbox`. This file stays empty of imports because
the nursery, which must be light until it is told what to import, lives in this package too.
"""
