"""What an operator sees: events an hour, events of one fault, delay, the channel that is named."""
