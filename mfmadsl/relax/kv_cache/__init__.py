"""The attentions of TVM's paged KV cache, as kernels of ours that a call takes in their place."""
