"""What happens in the process that measures: `probe(device, time, **arguments)` yields payloads, one a figure."""
