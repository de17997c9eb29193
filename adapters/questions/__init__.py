"""Where questions, responses, stats and subscriptions are stored; messages to phones."""
