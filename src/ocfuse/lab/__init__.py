"""Research beside the product: the paper again, rival methods, the robot cell.

The product never imports it; the commands `bench` and `simulate` find it by name.
"""
