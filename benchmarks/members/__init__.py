"""Nine kernel members together, apart, and as public packages have them."""
