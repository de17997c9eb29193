"""A night's comparison share by share: what is split, one share's work, and what all of them come to."""
