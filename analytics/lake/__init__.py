"""The lake's files: where they are, which columns they have, and the bookkeeping that they carry."""
