"""Nights and restores of questions: stats of answers, words and phones that leave, tables filled again."""
