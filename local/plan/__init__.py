"""What a deployment costs: measured units times a price list, for each size of the template."""
