"""Pictures of the account of the reproduction, docs/reproduction.md."""
