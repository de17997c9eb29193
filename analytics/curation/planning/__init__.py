"""What a night has to curate: the plan, its batches, and the watermark from which the next one starts."""
