"""A stack on AWS: found by its name, with ordinary credentials; its pool's users; what errors mean."""
