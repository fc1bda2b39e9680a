"""The world a run happens in: the emulated volume, the instance's memory and CPUs, and the undoing of both.

``volume`` attaches block devices, ``instance`` bounds memory and CPUs, ``journal`` writes down every change before
it is made, ``clean`` undoes what a killed run left, ``preflight`` refuses early, ``doctor`` explains the machine.
"""
