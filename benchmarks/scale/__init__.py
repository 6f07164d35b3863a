"""How time and memory of a fit grow with rows and features, and where they stand."""
