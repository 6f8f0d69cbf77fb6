"""Finds, starts, watches and calls every tool server. Other packages use `annabelle.toolbox.facade.Toolbox`; imports
nothing, because the fork server must start light.
"""
