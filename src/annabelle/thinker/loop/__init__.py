"""The agent loop: model, tools, results, model, until the model is done or a limit is reached (LOOP-01)."""
