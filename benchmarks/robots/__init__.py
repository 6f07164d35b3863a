"""A simulated robot cell: its recordings and what is measured on them."""
