"""The lint that sees what CloudFormation sees: templates expanded and resolved, for sets of parameters."""
