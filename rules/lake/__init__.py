"""What the lake holds: one declared schema per entity, and the row that an item becomes."""
