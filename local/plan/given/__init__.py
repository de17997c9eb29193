"""What a plan is made of: measured units, prices, facts about AWS, the environments and their resources."""
