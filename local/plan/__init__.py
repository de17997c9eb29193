"""What the system costs and where it ends: from measured units, a price list and the template."""
