"""Words and phrases of natural languages as data: one folder per language, one TOML file per topic, one matcher."""
