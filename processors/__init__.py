"""One module for each stream, queue or schedule; those of leads, questions and webhooks have folders."""

import gc

# What a function imports stays. At Python's usual 700 new objects a cold start looks for garbage a hundred
# times, in vain: 3 to 8% of its CPU (bench/cold_start.py). A batch leaves 30 in cycles.
gc.set_threshold(50_000)
