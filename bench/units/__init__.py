"""Units of the main paths: what each costs, measured, and the file that holds the code to it."""
