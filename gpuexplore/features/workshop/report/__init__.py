"""What came of a room: who is how far with what, what was guessed and measured, and all of it as a file."""
