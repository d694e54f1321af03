"""What stands above a run wherever one is shown: its title, device, time and quality, and what can be done with it."""
