"""Sums weighted by a function of products, without a softmax: gradients, linear attention."""
