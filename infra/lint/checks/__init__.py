"""The checks. Each takes the stacks of one set of parameters and gives the faults in them."""
