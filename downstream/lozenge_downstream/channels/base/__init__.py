"""The parts of channels. It knows no channel."""
