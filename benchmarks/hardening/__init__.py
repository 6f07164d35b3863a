"""What strangers' files do to us: mutated model files, and bytes at the door of tables."""
