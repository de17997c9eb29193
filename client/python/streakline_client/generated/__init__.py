"""Types made from the API's document. `make clients` writes them."""
