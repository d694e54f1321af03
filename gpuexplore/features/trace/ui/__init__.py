"""The page Trace: a file of torch.profiler, where its time goes, and ways to the same operation here."""
