"""The doors of questions, answers, subscriptions and stats."""
