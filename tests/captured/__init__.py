"""What captures and replays cost, and whether keys of a long capture are learned."""
