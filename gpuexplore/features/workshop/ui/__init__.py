"""The page Rooms: opening one, coming in, being in it, and leading it."""
