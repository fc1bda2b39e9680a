"""How fast the emulator is, beside others that serve a block device from a process."""
