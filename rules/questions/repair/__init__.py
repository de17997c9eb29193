"""Whether what follows from answers may be repaired."""
