"""The campaign: attacks on the product, run by `make campaign`; a small part of each runs in the tests."""
