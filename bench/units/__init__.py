"""Units of the main paths: what each costs, measured, and the file that a test compares with the code."""
