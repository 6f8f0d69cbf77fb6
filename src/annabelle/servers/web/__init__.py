"""The browser: a Chromium of this machine that pages are read and used with, one profile for each agent."""
