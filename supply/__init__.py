"""What goes out, and what it stands on: oldest versions, distributions, audit."""
