"""Whom an amnesty concerns, as the lake knows it."""
