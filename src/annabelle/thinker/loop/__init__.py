"""The loop: model, tools, results, model, until the model is done or a limit says stop (LOOP-01)."""
