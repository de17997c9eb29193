"""Phones that are told of questions: subscriptions, their places, and what is sent to a phone."""
