"""A virtual machine in which the wheel is used."""
