"""Two products with a softmax between them as one kernel."""
