"""One module for each stream, queue or schedule; those of leads and of questions have rooms of their own."""
