"""The emulator, as the laptop cloud starts it."""
