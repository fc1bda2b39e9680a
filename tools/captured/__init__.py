"""What reading, recording and replaying captures costs."""
