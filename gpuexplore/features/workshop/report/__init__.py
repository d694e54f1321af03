"""The report of a room: progress, guesses and measurements, and all of it as a file."""
