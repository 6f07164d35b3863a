"""The command on tables that are larger than it may hold in memory."""
