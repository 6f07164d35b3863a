"""Research beside the product: the paper's experiment, rival methods, the robot cell.

The product never imports it; the commands `bench` and `simulate` find it by name. It may use
all of the library, and must not hold anything that the library needs.
"""
