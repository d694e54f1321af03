"""Activities on a page: a button queues one, the URL names it, and what it observes is drawn as it comes."""
