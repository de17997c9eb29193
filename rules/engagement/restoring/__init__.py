"""What tables held, told from the rows of the lake (rule 21)."""
