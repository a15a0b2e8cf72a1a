"""One module per rule of the contract, with one class of tests or a few."""
