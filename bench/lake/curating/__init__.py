"""What the benchmark of curation compares: lakes, rivals, floors, and what each has written."""
