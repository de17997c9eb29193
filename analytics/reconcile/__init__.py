"""Live tables against the lake and against their own journals, and their repair."""
