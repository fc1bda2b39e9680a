"""Kind `replay`: the selection from a capture, the destinations of its sessions, and the process that sends it."""
