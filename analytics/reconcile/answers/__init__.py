"""Stats of people who answer, held against their responses and the lake."""
